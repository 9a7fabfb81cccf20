"""The mechanism of matrix capsules: poses and activations, routed by expectation and
maximisation."""

from __future__ import annotations

import math
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from architectures.capsule.em_caps import LOWEST_VARIANCE, ExpectationMaximisation, MatrixCapsules, SpreadLoss
from harness.objectives import Step, Supervised
from tests.support.batches import assert_each_alone, random_texts
from tests.support.models import small
from tests.support.oracles import convolution
from tests.support.same import assert_same

WIDTH, CLASSES = 4, 3

texts = partial(random_texts, seed=1, width=WIDTH)
model_of = partial(small, MatrixCapsules, WIDTH, classes=CLASSES, ngram=2, maps=5, types=2, side=2, stretch=1.5)


def routed(routing: ExpectationMaximisation, votes: Tensor, activations: Tensor) -> tuple[Tensor, Tensor]:
    """Means (J, H) and activations (J,) for the votes (I, J, H) of one text, by densities rather
    than their logarithms."""
    number, parents, _ = votes.shape
    shares = torch.full((number, parents), 1 / parents)
    for done in range(1, routing.rounds + 1):
        means, variances, a = [], [], []
        for j in range(parents):
            weights = [shares[i, j] * activations[i] for i in range(number)]
            total = sum(weights)
            mean = sum(w * v for w, v in zip(weights, votes[:, j], strict=True)) / total
            variance = sum(w * (v - mean) ** 2 for w, v in zip(weights, votes[:, j], strict=True)) / total
            variance = variance + LOWEST_VARIANCE
            cost = (routing.use_cost[j] + variance.sqrt().log()).mean() * total * parents / sum(activations)
            means.append(mean)
            variances.append(variance)
            a.append(torch.sigmoid(done / routing.rounds * (routing.activation_cost[j] - cost)))
        rows = []
        for i in range(number):
            densities = [
                a[j] * (torch.exp(-((v - m) ** 2) / (2 * s)) / (2 * math.pi * s).sqrt()).prod()
                for j, (v, m, s) in enumerate(zip(votes[i], means, variances, strict=True))
                for v, m, s in [(v.double(), m.double(), s.double())]
            ]
            rows.append(torch.stack(densities) / sum(densities))
        shares = torch.stack(rows).float()
    return torch.stack(means), torch.stack(a)


def test_a_text_without_a_capsule_gives_numbers():
    """Of no activation there is no share: 0 / 0 would spread through the gradients of the batch."""
    routing, votes = ExpectationMaximisation(3, 2), torch.randn(1, 4, 3, 2, requires_grad=True)
    poses, activations = routing(votes, torch.zeros(1, 4))
    (poses.sum() + activations.sum()).backward()
    assert poses.isfinite().all() and activations.isfinite().all() and votes.grad.isfinite().all()


def written_out(model: MatrixCapsules, vectors: Tensor) -> Tensor:
    """The activations of one text (n, WIDTH)."""
    votes, activations = [], []
    behind = max(0, model.ngrams.kernel_size[0] - len(vectors))
    for start, features in enumerate(convolution(model.ngrams, vectors, right=behind)):
        features = features.clamp(min=0)
        poses = (model.poses.weight @ features + model.poses.bias).view(-1, model.side, model.side)
        for pose, matrices in zip(poses, model.transformations, strict=True):
            vote = torch.stack([pose @ matrix for matrix in matrices])
            vote[:, 0, -1] += start / len(vectors)
            votes.append(vote.flatten(1))
        activations += torch.sigmoid(model.present.weight @ features + model.present.bias).unbind()
    return routed(model.routing, torch.stack(votes), torch.stack(activations))[1]


def test_each_text_of_a_batch_is_the_text_alone_written_out():
    """Windows of padding that vote, another order of the rounds, logarithms that go wrong, or votes
    without their place would each give other activations."""
    model, batch = model_of(), texts((6, 4, 1))
    assert_each_alone(model(batch), partial(written_out, model), batch, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_the_poses_too_are_those_of_the_densities(rounds):
    routing = small(ExpectationMaximisation, CLASSES, rounds)
    votes, activations = torch.randn(1, 5, CLASSES, 4).requires_grad_(), torch.rand(1, 5).requires_grad_()
    means, a = routed(routing, votes[0], activations[0])
    found = routing(votes, activations)
    assert_same(found[0][0], means, atol=1e-4, rtol=1e-4)
    assert_same(found[1][0], a, atol=1e-4, rtol=1e-4)


def test_no_rounds_of_routing_are_refused():
    with pytest.raises(ValueError, match="rounds is 0: routing takes at least one"):
        model_of(rounds=0)


def test_a_child_that_is_not_there_has_no_say():
    routing, votes = small(ExpectationMaximisation, 2, 3), torch.randn(1, 4, 2, 4)
    activations = torch.tensor([[0.5, 0.9, 0.2, 0.0]])
    other = votes.clone()
    other[:, 3] = 50.0
    for found, expected in zip(routing(other, activations), routing(votes, activations), strict=True):
        assert_same(found, expected)


def test_parents_of_two_clusters_of_votes_share_them_out():
    """Each child ends with the parent in whose cluster its vote lies: the parent's pose is the
    cluster's middle, which even shares would not give."""
    routing = ExpectationMaximisation(2, 3)
    first, second = torch.zeros(4), torch.ones(4)
    near = 0.1 * torch.randn(6, 1, 4)
    # The children of the second cluster vote for the first parent far off and scattered.
    votes = torch.cat(
        [near[:3] + torch.stack([first, 3 * torch.randn(4)]), near[3:] + torch.stack([9 * first, second])]
    )
    votes[3:, 0] = 3 * torch.randn(3, 4)
    votes[:3, 1] = 3 * torch.randn(3, 4)
    poses = routing(votes[None], torch.ones(1, 6))[0][0].detach()
    torch.testing.assert_close(poses[0], votes[:3, 0].mean(0), atol=0.05, rtol=0)
    torch.testing.assert_close(poses[1], votes[3:, 1].mean(0), atol=0.05, rtol=0)


def test_equal_votes_make_a_parent_sure_and_scattered_ones_do_not():
    """The first parent's votes agree; a single child stays finite."""
    votes = torch.randn(1, 8, 2, 4)
    votes[:, :, 0] = 1.0
    agreed, scattered = ExpectationMaximisation(2, 3)(votes, torch.ones(1, 8))[1][0]
    assert agreed > 0.95 and scattered < 0.6
    for found in ExpectationMaximisation(2, 3)(votes[:, :1], torch.ones(1, 1)):
        assert found.isfinite().all()


def test_a_text_told_twice_is_as_sure_as_once():
    """Costs that grew with the number of children would make long texts sure of everything."""
    routing, votes, activations = small(ExpectationMaximisation, 2, 3), torch.randn(1, 5, 2, 4), torch.rand(1, 5)
    once, twice = routing(votes, activations)[1], routing(votes.repeat(1, 2, 1, 1), activations.repeat(1, 2))[1]
    assert_same(once, twice)


def test_the_spread_loss_by_hand():
    """Margin 0.9, the right class 0.6: the others at 0.5 and 0.1 are 0.1 and 0.5 below it, so 0.8^2
    + 0.4^2 = 0.8. One that is 0.9 below costs nothing."""
    model = model_of()
    scores = torch.tensor([[0.6, 0.5, 0.1], [0.05, 0.95, 0.0]])
    torch.testing.assert_close(model.objective(scores, torch.tensor([0, 1])), torch.tensor(0.4))


@pytest.mark.parametrize(("progress", "margin"), [(0.0, 0.2), (0.5, 0.55), (1.0, 0.9)])
def test_the_margin_grows_with_the_training(progress, margin, monkeypatch):
    encoder = model_of()
    assert encoder.margin == 0.9 and encoder.trained_by is SpreadLoss
    seen = []
    monkeypatch.setattr(Supervised, "losses", lambda self, model, step: seen.append(model.encoder.margin))
    model = SimpleNamespace(encoder=encoder)
    SpreadLoss(encoder, model, Supervised()).losses(model, Step({}, progress))
    assert seen == [pytest.approx(margin)]
