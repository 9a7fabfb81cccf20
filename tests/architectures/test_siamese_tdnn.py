"""The mechanism of the siamese time-delay network: resampled sequences, shared filters with
sub-sampling, cosine, target cosines."""

from __future__ import annotations

import re
from functools import partial

import pytest
import torch
from torch import Tensor

from architectures.siamese.siamese_tdnn import SiameseTDNN, resampled
from tests.support.batches import assert_each_alone, random_texts, texts_of
from tests.support.oracles import convolution, cosine
from tests.support.pairs import shipped

WIDTH = 4
FIRST, SECOND = (4, 1, 6), (2, 5, 3)
"""Words of each text of three pairs."""

texts = partial(random_texts, width=WIDTH)
model_of = partial(shipped, "siamese_tdnn", WIDTH, points=20, units=(3, 2), reaches=(5, 3), steps=(3, 2))


def stretched(text: Tensor, points: int) -> list[Tensor]:
    """Points between the words of one text, each found by itself."""
    found = []
    for point in range(points):
        place = point * (len(text) - 1) / (points - 1)
        before = min(int(place), len(text) - 2) if len(text) > 1 else 0
        after = text[before + 1] if len(text) > 1 else text[before]
        found.append(text[before] * (1 - (place - before)) + after * (place - before))
    return found


def features(model: SiameseTDNN, text: Tensor) -> Tensor:
    """The feature vector of one text: units side by side, each with all its values in time."""
    values = stretched(text, 20)
    for delay, step in zip(model.delays, (3, 2), strict=True):
        values = [value.tanh() for value in convolution(delay, values)[::step]]
    return torch.stack(values, dim=1).flatten()


def written_out(model: SiameseTDNN, first: Tensor, second: Tensor) -> Tensor:
    """The score of one pair."""
    return cosine(features(model, first), features(model, second))


def test_a_score_is_the_cosine_of_two_sub_sampled_feature_vectors():
    """Another stride, a missing tanh, a mean over time for the whole vector, two networks, or
    padding between the points would each show."""
    model = model_of()
    pairs = texts(FIRST, 1), texts(SECOND, 2)
    assert_each_alone(model(*pairs), partial(written_out, model), *pairs, rtol=1e-4, atol=1e-5)


def test_points_of_worked_examples():
    """Five points of three words: the words and what lies between them; of one word: that word."""
    vectors = torch.tensor([[[0.0], [1.0], [3.0]], [[7.0], [50.0], [50.0]], [[2.0], [4.0], [50.0]]])
    found = resampled(vectors, torch.tensor([3, 1, 2]), 5)
    assert found[..., 0].tolist() == [[0.0, 0.5, 1.0, 2.0, 3.0], [7.0] * 5, [2.0, 2.5, 3.0, 3.5, 4.0]]


def test_identical_texts_score_one_and_order_counts():
    model, text = model_of(), texts((4, 3), 1)
    torch.testing.assert_close(model(text, text), torch.ones(2))
    assert model(texts_of(text.vectors[:1]), texts_of(text.vectors[:1].flip(1))).item() < 0.999


def test_at_its_default_sizes_it_has_the_units_of_the_paper():
    """12 by 64 values, then 16 by 19."""
    model, seen = shipped("siamese_tdnn", WIDTH), []
    for delay in model.delays:
        delay.register_forward_hook(lambda module, inputs, output: seen.append(tuple(output.shape[1:])))
    assert model.features(texts((7,), 1)).shape == (1, 304)
    assert seen == [(12, 64), (16, 19)]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"units": (3, 2, 2)}, "units=(3, 2, 2), reaches=(5, 3), steps=(3, 2): each needs one number for each layer"),
        ({"reaches": (5,)}, "units=(3, 2), reaches=(5,), steps=(3, 2): each needs one number for each layer"),
        ({"steps": (3, 2, 1)}, "units=(3, 2), reaches=(5, 3), steps=(3, 2, 1): each needs one number for each layer"),
        ({"points": 10}, "points=10: reaches=(5, 3) and steps=(3, 2) need 11 points or more"),
    ],
    ids=["units", "reaches", "steps", "points"],
)
def test_layers_that_do_not_fit_are_refused(options, said):
    """A layer without its number was left out in silence, and points that no window fits in ended
    the training at its first batch."""
    with pytest.raises(ValueError, match=re.escape(said)):
        model_of(**options)


def test_as_many_points_as_the_layers_reach_over_are_enough():
    """Three of the first layer's values, at points 0, 3 and 6, the last over points 6 to 10."""
    assert model_of(points=11).features(texts((4,), 1)).shape == (1, 2)


def test_the_loss_is_the_squared_error_to_the_target_cosines():
    """At the targets its gradient is zero: both kinds of pairs come to rest."""
    model, labels = model_of(wrong=-0.5), torch.tensor([1, 0])
    assert model.rank_loss(torch.tensor([0.5, 0.5]), labels, labels).item() == pytest.approx((0.25 + 1.0) / 2)
    scores = torch.tensor([1.0, -0.5], requires_grad=True)
    model.rank_loss(scores, labels, labels).backward()
    assert scores.grad.tolist() == [0.0, 0.0]
