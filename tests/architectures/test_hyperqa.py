"""The mechanism of HyperQA: summed projected words inside the unit ball, Poincare distance, linear
score, pairwise hinge."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch

from architectures.siamese import hyperqa
from architectures.siamese.hyperqa import RIM, HyperQA, clipped, poincare_distance
from tests.support.batches import assert_each_alone, random_texts, texts_of
from tests.support.models import small
from tests.support.pairs import inputs_of, share_of_zeros
from tests.support.same import assert_same

WIDTH = 3
FIRST, SECOND = (3, 1, 5), (2, 4, 1)
"""Words of each text of three pairs."""

texts = partial(random_texts, width=WIDTH)


def model_of(scale: float = 0.05, **options) -> HyperQA:
    model = small(HyperQA, WIDTH, hidden=4, **options)
    with torch.no_grad():
        model.project.weight.normal_(0, scale)
        model.project.bias.normal_(0, scale)
        model.score.weight.fill_(-0.7)
        model.score.bias.fill_(0.3)
    return model


def written_out(q: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
    """The distance of two vectors in the words of the paper, in double precision."""
    q, a = (v.double() * (1 - RIM) / v.double().norm() if v.norm() > 1 - RIM else v.double() for v in (q, a))
    return torch.acosh(1 + 2 * ((q - a) @ (q - a)) / ((1 - q @ q) * (1 - a @ a))).float()


@pytest.mark.parametrize("scale", [0.05, 4.0], ids=["inside the ball", "beyond its border"])
def test_a_score_is_linear_in_the_distance_of_the_sums_of_projected_words(scale):
    """A mean for the sum, a missing ReLU, a euclidean distance or padding in a sum would each show
    here."""
    model, first, second = model_of(scale), texts(FIRST, 1), texts(SECOND, 2)

    def score(*pair: torch.Tensor) -> torch.Tensor:
        q, a = (
            sum(torch.clamp(model.project.weight @ word + model.project.bias, min=0) for word in words)
            for words in pair
        )
        assert (q.norm() < 1) == (scale < 1)
        return model.score.weight[0, 0] * written_out(q, a) + model.score.bias[0]

    assert_each_alone(model(first, second), score, first, second, rtol=1e-3, atol=1e-12)


def test_distances_worked_by_hand():
    """d(0, x) = 2 artanh |x|, along a diameter distances add up, and d(x, x) = 0."""
    zero, half, back = torch.zeros(1, 2), torch.tensor([[0.5, 0.0]]), torch.tensor([[-0.5, 0.0]])
    assert poincare_distance(zero, half).item() == pytest.approx(2 * math.atanh(0.5)) == pytest.approx(1.0986, abs=1e-4)
    assert poincare_distance(half, back).item() == pytest.approx(4 * math.atanh(0.5))
    assert poincare_distance(half, half).item() == 0


def test_the_distance_is_symmetric_and_grows_towards_the_rim():
    """The same euclidean step of 0.05 is the longer the nearer the border it is taken."""
    out = torch.tensor([[0.0, 0.0], [0.5, 0.0], [0.9, 0.0], [0.9499, 0.0]])
    step = torch.tensor([0.05, 0.0])
    lengths = poincare_distance(out, out + step)
    assert (lengths[1:] > lengths[:-1]).all()
    torch.testing.assert_close(poincare_distance(out + step, out), lengths)


def test_only_vectors_longer_than_the_ball_are_shortened():
    vectors = torch.tensor([[0.3, 0.4], [3.0, 4.0], [0.0, 0.0]])
    found, room = clipped(vectors)
    torch.testing.assert_close(found, torch.tensor([[0.3, 0.4], [0.6, 0.8], [0.0, 0.0]]), atol=2e-5, rtol=0)
    torch.testing.assert_close(room, torch.tensor([0.75, 2 * RIM, 1.0]), rtol=1e-2, atol=1e-8)


@pytest.mark.parametrize("length", [0.0, 0.5, 1 - 2 * RIM, 1.0, 40.0])
def test_gradients_are_finite_at_the_same_point_at_the_rim_and_beyond(length):
    """arcosh(1 + x) itself has none at x = 0, and 1 / (1 - |q|^2) none at the rim: one such text
    would end the training."""
    for other in ([length, 0.0], [0.0, length], [-0.1, 0.2]):
        q, a = torch.tensor([[length, 0.0]], requires_grad=True), torch.tensor([other], requires_grad=True)
        poincare_distance(q, a).sum().backward()
        assert q.grad.isfinite().all() and a.grad.isfinite().all()
        assert max(q.grad.norm(), a.grad.norm()) < 4 / RIM


def test_near_the_rim_the_gradient_is_that_of_double_precision():
    q, a = torch.tensor([[0.999, 0.0]]), torch.tensor([[0.0, 0.998]])
    grads = []
    for kind in (torch.float32, torch.float64):
        point = q.clone().to(kind).detach().requires_grad_()
        poincare_distance(point, a.to(kind)).sum().backward()
        grads.append(point.grad.double())
    torch.testing.assert_close(grads[0], grads[1], rtol=1e-3, atol=1e-3)


def test_texts_of_forty_words_start_inside_the_ball():
    """Beyond its border the length of a sum has no gradient: a model that starts there cannot use
    the ball."""
    torch.manual_seed(0)
    words = torch.empty(50, 40, 100).uniform_(-0.25, 0.25)
    sums = HyperQA(100).eval().text(texts_of(words))
    assert sums.norm(dim=1).max() < 1


def test_near_texts_score_higher_from_the_start():
    """A score that rose with the distance would first have to be unlearned."""
    score = HyperQA(WIDTH).score
    assert score(torch.tensor([[0.0], [2.0]])).flatten().tolist() == [0.0, -2.0]


def test_the_loss_is_the_hinge_over_all_pairs_of_a_question():
    scores, labels, groups = torch.tensor([0.9, 0.1, 0.3, 0.7]), torch.tensor([1, 0, 0, 0]), torch.tensor([0, 0, 0, 1])
    assert model_of(margin=1.0).rank_loss(scores, labels, groups).item() == pytest.approx((0.2 + 0.4) / 2)


def test_dropout_acts_on_the_words_and_on_the_sums_before_they_are_shortened(monkeypatch):
    """Half of either is zero, and what is kept is doubled: shortened first, the point would leave
    the ball."""
    model, first, second = model_of(dropout=0.5), random_texts((30, 20), 1, 40), random_texts((9, 4), 2, 40)
    model.project = torch.nn.Linear(40, 200)
    read, compared = inputs_of(model.project)[0], []
    monkeypatch.setattr(hyperqa, "poincare_distance", lambda *points: compared.extend(points) or torch.zeros(2))
    model.train()(first, second)
    assert 0.4 < share_of_zeros(read) < 0.6
    for words, text, point in zip(read, (first, second), compared, strict=True):
        sums = [
            sum(torch.clamp(model.project.weight @ word + model.project.bias, min=0) for word in row[:length])
            for row, length in zip(words, text.lengths.tolist(), strict=True)
        ]
        kept = point != 0
        assert 0.4 < kept.float().mean() < 0.6 and (point.norm(dim=1) > 1).all()
        assert_same(point[kept], 2 * torch.stack(sums)[kept], rtol=1e-4, atol=1e-5)


def test_nothing_is_dropped_in_evaluation():
    model, first, second = model_of(dropout=0.5), texts(FIRST, 1), texts(SECOND, 2)
    torch.testing.assert_close(model(first, second), model_of(dropout=0.0).train()(first, second))


def test_word_vectors_are_fixed_unless_tuning_is_asked_for():
    assert model_of().vectors == "fixed" and model_of(tuned=True).vectors == "tuned"
