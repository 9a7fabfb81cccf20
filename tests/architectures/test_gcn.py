"""The mechanism of the graph convolutional network: states spread along edges, each scaled by the
degrees of both ends."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor

from architectures.graph.gcn import GraphConvolutionalNetwork
from harness.views.graph import WordGraphs
from tests.support.graphs import TEXTS, assert_each_alone, fitted, graphs_of, renumbered
from tests.support.models import small
from tests.support.same import assert_same

WIDTH = 5

model_of = partial(small, GraphConvolutionalNetwork, WIDTH)


def spread(counts: Tensor, states: Tensor) -> Tensor:
    """Sum over a word and its neighbours, edge by edge."""
    n = len(counts)
    degree = [1 + sum(counts[i].tolist()) for i in range(n)]
    rows = []
    for i in range(n):
        row = states[i] / degree[i]
        for j in range(n):
            row = row + counts[i, j] / (degree[i] * degree[j]) ** 0.5 * states[j]
        rows.append(row)
    return torch.stack(rows)


def written_out(model: GraphConvolutionalNetwork, vectors: Tensor, counts: Tensor) -> Tensor:
    """The vector of one text."""
    hidden = spread(counts, vectors @ model.first.weight.T).clamp(min=0)
    return spread(counts, hidden).mean(0)


@pytest.mark.parametrize("reach", [1, 3])
def test_each_text_of_a_batch_is_spread_over_its_own_graph(reach):
    """Two words that are near each other twice count twice; a text of one word has its loop."""
    model, view = model_of(hidden=4), fitted(WordGraphs(min_count=1, reach=reach))
    batch = graphs_of(view, *TEXTS, width=WIDTH)
    assert_each_alone(model(batch), partial(written_out, model), batch, reach, *TEXTS)


def test_the_shares_on_a_path_of_three():
    """Degrees with loops are 2, 3 and 2: rows need not sum to one, as they would divided by the
    own degree alone."""
    path = graphs_of(fitted(WordGraphs(min_count=1, reach=1), "x y z"), "x y z", width=WIDTH)
    found = GraphConvolutionalNetwork.propagation(path)[0]
    torch.testing.assert_close(
        found, torch.tensor([[1 / 2, 6**-0.5, 0], [6**-0.5, 1 / 3, 6**-0.5], [0, 6**-0.5, 1 / 2]])
    )


def test_the_order_of_the_nodes_changes_nothing():
    model, batch = model_of(), graphs_of(fitted(WordGraphs(min_count=1)), *TEXTS, width=WIDTH)
    assert_same(model(renumbered(batch)), model(batch))


def test_a_word_sees_two_steps_far_and_no_further():
    """On a path the gradient of the first word's part ends two edges away."""
    model = model_of(stretch=None)
    with torch.no_grad():
        model.first.weight.abs_()
    batch = graphs_of(fitted(WordGraphs(min_count=1, reach=1), "p q r s"), "p q r s", width=WIDTH)
    batch = batch._replace(
        vectors=batch.vectors.abs().requires_grad_(), mask=torch.tensor([[True, False, False, False]])
    )
    model(batch).sum().backward()
    assert (batch.vectors.grad[0].abs().sum(1) > 0).tolist() == [True, True, True, False]


def test_the_defaults_are_those_of_the_paper():
    model = GraphConvolutionalNetwork(300)
    assert model.view == WordGraphs(reach=3) and model.size == 16
    assert model.first.weight.shape == (16, 300) and model.first.bias is None
    limit = (6 / 316) ** 0.5
    assert 0.9 * limit < model.first.weight.abs().max() <= limit


def test_half_of_the_words_vectors_and_of_the_hidden_states_is_dropped_in_training():
    model, batch = model_of(), graphs_of(fitted(WordGraphs(min_count=1)), *TEXTS, width=WIDTH)
    seen: list[Tensor] = []
    model.dropout.register_forward_hook(lambda layer, inputs, output: seen.extend([*inputs, output]))
    model.train()(batch)
    vectors, kept_vectors, hidden, kept_hidden = seen
    torch.testing.assert_close(vectors, batch.vectors)
    assert hidden.shape[-1] == 16 and (hidden >= 0).all()
    for before, after in ((vectors, kept_vectors), (hidden, kept_hidden)):
        assert 0.3 < (after[before != 0] == 0).float().mean() < 0.7
