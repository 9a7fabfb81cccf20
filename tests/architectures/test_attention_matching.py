"""The mechanism of attention matching: additive attention in both directions, [h, h-hat], mean and
maximum of both sides."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from architectures.matching.attention_matching import AttentionMatching
from tests.support.batches import assert_each_alone, random_texts
from tests.support.models import small
from tests.support.oracles import additive, softmax_mean
from tests.support.pairs import bilstm, dense
from tests.support.same import assert_same

WIDTH = 5
FIRST, SECOND = (4, 1, 6), (2, 5, 3)
"""Words of each text of three pairs."""

texts = partial(random_texts, width=WIDTH)


model_of = partial(small, AttentionMatching, WIDTH, hidden=4, attention=3)


def written_out(model: AttentionMatching, first: Tensor, second: Tensor) -> Tensor:
    """The vector of one pair, score by score."""
    h1, h2 = bilstm(model.encoding, first), bilstm(model.encoding, second)
    pooled = []
    for own, other in ((h1, h2), (h2, h1)):
        rows = [torch.cat([h, softmax_mean([additive(model.attention, h, g) for g in other], other)]) for h in own]
        pooled += [sum(rows) / len(rows), torch.stack(rows).max(0).values]
    return dense(model.hidden, torch.cat(pooled)).clamp(min=0)


def test_a_batch_of_pairs_is_each_pair_written_out_score_by_score():
    """A softmax over the wrong axis, padding that is attended to or pooled, one direction only, or
    another cell would show here."""
    model, first, second = model_of(), texts(FIRST, 1), texts(SECOND, 2)
    result = model(first, second)
    assert result.shape == (3, model.size)
    assert_each_alone(result, partial(written_out, model), first, second, rtol=1e-4, atol=1e-5)


def test_what_a_text_attends_to_lies_in_the_other_text():
    """Each side must change with the words of the other: states alone would make twin encoders of
    the model."""
    model, first, second, third = model_of(), texts((4,), 1), texts((3,), 2), texts((3,), 3)
    h = [model.encoding(text.vectors, text.mask) for text in (first, second, third)]
    sides = [model.matched(h[0], first.mask, other, second.mask) for other in h[1:]]
    own = model.encoding.size
    assert_same(sides[0][:, :own], sides[1][:, :own])
    assert not torch.allclose(sides[0][:, own : 2 * own], sides[1][:, own : 2 * own], atol=1e-3)
    assert (sides[0][:, own : 2 * own] <= h[1].amax(1) + 1e-6).all() and (
        sides[0][:, own : 2 * own] >= h[1].amin(1) - 1e-6
    ).all()
