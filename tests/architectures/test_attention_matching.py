"""The mechanism of attention matching: additive attention in both directions, [h, h-hat], mean and
maximum of both sides."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from architectures.matching.attention_matching import AttentionMatching
from tests.support.word_batches import random_texts

WIDTH = 5
FIRST, SECOND = (4, 1, 6), (2, 5, 3)
"""Words of each text of three pairs."""

texts = partial(random_texts, width=WIDTH)


def model_of() -> AttentionMatching:
    """A model with weights so large that attention is far from uniform."""
    torch.manual_seed(0)
    model = AttentionMatching(WIDTH, hidden=4, attention=3).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3)
    return model


def states_of(model: AttentionMatching, vectors: Tensor) -> Tensor:
    """States (T, size) of one text without padding."""
    return model.encoding(vectors[None], torch.ones(1, len(vectors), dtype=torch.bool))[0]


def written_out(model: AttentionMatching, first: Tensor, second: Tensor) -> Tensor:
    """The vector of one pair, score by score."""
    w1, b, w2, v = (
        model.attention.query.weight,
        model.attention.query.bias,
        model.attention.key.weight,
        model.attention.score.weight[0],
    )
    h1, h2 = states_of(model, first), states_of(model, second)
    pooled = []
    for own, other in ((h1, h2), (h2, h1)):
        rows = []
        for h in own:
            weights = [(v @ torch.tanh(w1 @ h + w2 @ g + b)).exp() for g in other]
            rows.append(torch.cat([h, sum(w * g for w, g in zip(weights, other, strict=True)) / sum(weights)]))
        pooled += [sum(rows) / len(rows), torch.stack(rows).max(0).values]
    return model.hidden(torch.cat(pooled)).clamp(min=0)


def test_a_batch_of_pairs_is_each_pair_written_out_score_by_score():
    """A softmax over the wrong axis, padding that is attended to or pooled, or one direction only
    would show here."""
    model, first, second = model_of(), texts(FIRST, 1), texts(SECOND, 2)
    found = model(first, second)
    assert found.shape == (3, model.size) and found.any()
    for row, (m, n) in enumerate(zip(FIRST, SECOND, strict=True)):
        torch.testing.assert_close(
            found[row], written_out(model, first.vectors[row, :m], second.vectors[row, :n]), rtol=1e-4, atol=1e-5
        )


def test_what_a_text_attends_to_lies_in_the_other_text():
    """Each side must change with the words of the other: states alone would make twin encoders of
    the model."""
    model, first, second, third = model_of(), texts((4,), 1), texts((3,), 2), texts((3,), 3)
    h = [model.encoding(text.vectors, text.mask) for text in (first, second, third)]
    sides = [model.matched(h[0], first.mask, other, second.mask) for other in h[1:]]
    own = model.encoding.size
    torch.testing.assert_close(sides[0][:, :own], sides[1][:, :own])
    assert not torch.allclose(sides[0][:, own : 2 * own], sides[1][:, own : 2 * own], atol=1e-3)
    assert (sides[0][:, own : 2 * own] <= h[1].amax(1) + 1e-6).all() and (
        sides[0][:, own : 2 * own] >= h[1].amin(1) - 1e-6
    ).all()
