"""The mechanism of the hierarchical log-bilinear model: a predicted vector goes down a tree."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from architectures.classical.hlbl import HierarchicalLogBilinear
from tests.support.foretelling import in_stretches, words
from tests.support.models import small
from tests.support.same import assert_same

WIDTH = 3


def model_of(symbols: int, context: int = 5) -> HierarchicalLogBilinear:
    """A small model, whose places and biases have numbers of their own: fresh ones are alike."""
    model = small(HierarchicalLogBilinear, WIDTH, symbols, context=context)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in (model.places, model.biases.weight):
            parameter += torch.randn(parameter.shape, generator=generator)
    return model


def down_the_tree(model: Any, r: Tensor, symbols: int) -> list[float]:
    """The probability of each word, by splitting that of each node among its children."""
    shares = {1: 1.0}
    for node in range(1, symbols):
        right = torch.sigmoid(r @ model.nodes.weight[node - 1] + model.biases.weight[node - 1, 0]).item()
        shares |= {2 * node: shares[node] * (1 - right), 2 * node + 1: shares[node] * right}
    return [shares[symbols + word] for word in range(symbols)]


@pytest.mark.parametrize("symbols", [2, 3, 5, 8, 13, 61])
def test_a_words_probability_is_that_of_its_way_and_all_sum_to_one(symbols):
    """A path that is too short, or a node that two paths read differently, leaves less or more."""
    model = model_of(symbols)
    r = torch.randn(WIDTH, generator=torch.Generator().manual_seed(1))
    logs = model.log_probabilities(r.expand(1, symbols, -1), torch.arange(symbols)[None])[0]
    assert logs.exp().tolist() == pytest.approx(down_the_tree(model, r, symbols), rel=1e-4)
    assert logs.exp().sum().item() == pytest.approx(1)


def test_a_tree_of_two_words_is_logistic_regression():
    model, states = model_of(2), torch.randn(1, 6, WIDTH)
    truth = torch.tensor([[0, 1, 1, 0, 1, 0]])
    scores = states[0] @ model.nodes.weight[0] + model.biases.weight[0, 0]
    expected = -F.binary_cross_entropy_with_logits(scores, truth[0].float(), reduction="none")
    assert_same(model.log_probabilities(states, truth)[0], expected)


@pytest.mark.parametrize("ends", [[8], [1, 3, 8]])
@pytest.mark.parametrize("context", [1, 2, 5])
def test_the_vectors_before_predict_one_each_by_the_diagonal_of_its_place(context, ends):
    model = model_of(7, context=context)
    vectors = torch.randn(2, 8, WIDTH, generator=torch.Generator().manual_seed(2))
    states, _ = in_stretches(model, words(vectors), ends)
    padded = torch.cat([torch.zeros(2, context, WIDTH), vectors], 1)
    for t in range(8):
        before = padded[:, t + 1 : t + 1 + context].unbind(1)
        expected = torch.stack(
            [sum(torch.diag(c) @ w[row] for c, w in zip(model.places, before, strict=True)) for row in range(2)]
        )
        assert_same(states[:, t], expected)


def test_the_order_of_the_words_counts_unless_all_places_are_alike():
    """A fresh model takes their mean."""
    vectors = torch.randn(1, 5, WIDTH)
    turned = vectors[:, [0, 1, 3, 2, 4]]
    for model, same in ((model_of(7), False), (HierarchicalLogBilinear(WIDTH, 7), True)):
        straight, swapped = (model(words(each), model.start(1))[0][0, 4] for each in (vectors, turned))
        assert torch.allclose(straight, swapped) is same
        assert model.window == 5
    torch.testing.assert_close(straight, vectors[0].mean(0))


def test_frequent_words_have_no_longer_ways_than_rare_ones():
    """With probability one half at each node a word's is 2 to the minus length of its way."""
    model = HierarchicalLogBilinear(WIDTH, 11)
    logs = model.log_probabilities(torch.zeros(1, 11, WIDTH), torch.arange(11)[None])[0]
    ways = (-logs / torch.tensor(2.0).log()).round().int().tolist()
    assert ways == sorted(ways) and set(ways) == {3, 4}
