"""The mechanism of ESIM: soft alignment by products alone, four comparisons, composition, and mean
and maximum of both texts."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor

from architectures.matching.esim import ESIM
from tests.support.batches import assert_each_alone, random_texts
from tests.support.models import small
from tests.support.oracles import softmax_mean
from tests.support.pairs import bilstm, dense, share_of_zeros

WIDTH = 5
FIRST, SECOND = (4, 1, 6), (2, 5, 3)
"""Words of each text of three pairs."""

texts = partial(random_texts, width=WIDTH)


model_of = partial(small, ESIM, WIDTH, hidden=4)


def aligned(own: Tensor, other: Tensor) -> list[Tensor]:
    """Equations 12 and 13: the mean of the other text's states under the softmax of their products
    with each own state."""
    return [softmax_mean([state @ candidate for candidate in other], other) for state in own]


def written_out(model: ESIM, first: Tensor, second: Tensor) -> Tensor:
    """The vector of one pair, state by state."""
    a, b = bilstm(model.encoding, first), bilstm(model.encoding, second)
    pooled = []
    for own, other in ((a, b), (b, a)):
        enhanced = [torch.cat([x, y, x - y, x * y]) for x, y in zip(own, aligned(own, other), strict=True)]
        composed = bilstm(model.composition, [dense(model.projection, m).clamp(min=0) for m in enhanced])
        pooled += [composed.sum(0) / len(composed), composed.max(0).values]
    return dense(model.output, torch.cat(pooled)).tanh()


def test_a_batch_of_pairs_is_each_pair_written_out_state_by_state():
    """A softmax over the wrong axis, padding that is attended to or pooled, a missing comparison,
    one direction, or another cell would show here."""
    model, first, second = model_of(), texts(FIRST, 1), texts(SECOND, 2)
    result = model(first, second)
    assert result.shape == (3, model.size)
    assert_each_alone(result, partial(written_out, model), first, second, rtol=1e-4, atol=1e-5)


def test_both_texts_are_read_by_the_same_weights():
    """Swapping the texts swaps the two halves of what the last layer reads."""
    model, first, second = model_of(), texts(FIRST, 1), texts(SECOND, 2)
    with torch.no_grad():
        half = model.output.weight.shape[1] // 2
        model.output.weight[:, half:] = model.output.weight[:, :half]
    torch.testing.assert_close(model(first, second), model(second, first))


@pytest.mark.parametrize("layer", ["encoding", "projection", "composition", "output"])
def test_dropout_stands_before_each_layer_but_the_projection(layer):
    """Half of what such a layer reads is zero in training; without it the model over-fits small
    tasks."""
    model, seen = ESIM(40, hidden=40).train(), []
    getattr(model, layer).register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    words = texts((9,), 1)._replace(vectors=torch.randn(1, 9, 40))
    model(words, words)
    # The projection reads states that no dropout has touched; the composition reads ReLUs, half of
    # which are zero anyway.
    expected = {"encoding": (0.4, 0.6), "projection": (0.0, 0.01), "composition": (0.65, 0.85), "output": (0.4, 0.6)}[
        layer
    ]
    assert expected[0] <= share_of_zeros(seen) <= expected[1]


def test_the_layer_above_reads_half_of_the_vector():
    """It is the softmax, which belongs to the head."""
    model, words = ESIM(40, hidden=200).train(), random_texts((9,), 1, 40)
    assert 0.4 < share_of_zeros([model(words, words)]) < 0.6
    assert share_of_zeros([model.eval()(words, words)]) == 0
