"""Attention of one sequence over another: the softmax over real positions, and Bahdanau's scores
written out."""

from __future__ import annotations

import math

import torch

from harness.layers.attention import AdditiveAttention, masked_softmax
from tests.support.batches import random_vectors
from tests.support.models import small
from tests.support.same import assert_same


def test_padding_has_no_weight_and_the_rest_is_a_softmax():
    """Numbers at padding, however large, would take the weight of the words."""
    scores = torch.tensor([[1.0, 2.0, 90.0], [3.0, 80.0, 90.0]])
    found = masked_softmax(scores, torch.tensor([[True, True, False], [True, False, False]]))
    first = 1 / (1 + math.e)
    torch.testing.assert_close(found, torch.tensor([[first, 1 - first, 0.0], [1.0, 0.0, 0.0]]))


def test_a_row_without_real_positions_gets_zeros():
    """A uniform mean over padding would be finite, and wrong."""
    assert masked_softmax(torch.tensor([[1.0, 2.0]]), torch.tensor([[False, False]])).tolist() == [[0.0, 0.0]]


def test_the_softmax_runs_over_the_dimension_that_is_asked_for():
    scores = torch.tensor([[[1.0, 5.0], [2.0, 6.0]]])
    found = masked_softmax(scores, torch.ones(1, 2, 2, dtype=torch.bool), dim=1)
    torch.testing.assert_close(found.sum(1), torch.ones(1, 2))
    torch.testing.assert_close(found[0, 0], torch.full((2,), 1 / (1 + math.e)))


def test_additive_attention_is_the_mean_of_the_keys_under_the_softmax_of_its_scores():
    """v . tanh(W1 query + W2 key + b) for each pair. Without the tanh or the bias, or with the mask
    of the queries, other means come out."""
    attention = small(AdditiveAttention, 3, 4, 5)
    queries, _ = random_vectors([3, 3], 1, 3)
    keys, mask = random_vectors([4, 2], 2, 4)
    found, weights = attention(queries, keys, mask), attention.weights(queries, keys, mask)
    first, second, last = attention.query, attention.key, attention.score.weight[0]
    for row, length in enumerate([4, 2]):
        for place, query in enumerate(queries[row]):
            scores = [
                (last * torch.tanh(first.weight @ query + first.bias + second.weight @ key)).sum()
                for key in keys[row, :length]
            ]
            expected = torch.stack(scores).exp() / torch.stack(scores).exp().sum()
            assert_same(weights[row, place, :length], expected)
            assert_same(found[row, place], expected @ keys[row, :length])
    assert not weights[1, :, 2:].any()


def test_the_score_of_additive_attention_has_no_bias():
    """The softmax takes away what all keys have: nothing would learn it."""
    names = {name for name, _ in AdditiveAttention(3, 4, 5).named_parameters()}
    assert names == {"query.weight", "query.bias", "key.weight", "score.weight"}
