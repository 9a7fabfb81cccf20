"""The mechanism of the graph attention network: each head weighs the neighbours by a softmax over
them alone."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from architectures.graph.gat import GraphAttention, GraphAttentionNetwork
from harness.views.graph import WordGraphs
from tests.support.graphs import TEXTS, assert_each_alone, fitted, graphs_of, renumbered
from tests.support.models import small
from tests.support.same import assert_same

WIDTH = 5

model_of = partial(small, GraphAttentionNetwork, WIDTH)
path = torch.tensor([[[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1]]]).bool()


def attended(layer: GraphAttention, states: Tensor, counts: Tensor) -> list[Tensor]:
    """The new states of each head, node by node."""
    found = []
    for k in range(layer.heads):
        size = layer.project.out_features // layer.heads
        w, a, b = layer.project.weight[k * size : (k + 1) * size], layer.receiver[k, :, 0], layer.sender[k, :, 0]
        rows = []
        for i in range(len(states)):
            seen = [j for j in range(len(states)) if j == i or counts[i, j] > 0]
            scores = torch.stack([a @ (w @ states[i]) + b @ (w @ states[j]) for j in seen])
            weights = torch.where(scores > 0, scores, 0.2 * scores).exp()
            weights = weights / weights.sum()
            rows.append(sum(weight * (w @ states[j]) for weight, j in zip(weights, seen, strict=True)))
        found.append(torch.stack(rows))
    return found


def written_out(model: GraphAttentionNetwork, vectors: Tensor, counts: Tensor) -> Tensor:
    """The vector of one text."""
    joined = torch.cat(attended(model.first, vectors, counts), dim=1)
    joined = torch.where(joined > 0, joined, joined.exp() - 1)
    return torch.stack(attended(model.last, joined, counts)).mean(0).mean(0)


def test_each_text_of_a_batch_attends_over_its_own_graph():
    """Also a word without neighbours, which has itself; heads are joined, the last ones
    averaged."""
    model, view = model_of(hidden=3, heads=2, last_hidden=4, last_heads=3), fitted(WordGraphs(min_count=1, reach=2))
    batch = graphs_of(view, *TEXTS, width=WIDTH)
    assert_each_alone(model(batch), partial(written_out, model), batch, 2, *TEXTS)


def test_equal_states_get_equal_weights_and_strangers_none():
    """The state of a node is then that of any of its neighbours, whatever their number."""
    layer = small(GraphAttention, WIDTH, hidden=3, heads=2, dropout=0.0)
    state = torch.randn(WIDTH)
    expected = (layer.project.weight @ state).view(2, 1, 3).expand(2, 4, 3)
    assert_same(layer(state.expand(1, 4, WIDTH), path)[0], expected)
    states = state.repeat(1, 4, 1).requires_grad_()
    layer(states, path)[:, :, 0].sum().backward()
    assert (states.grad[0].abs().sum(1) > 0).tolist() == [True, True, False, False]


def test_whom_a_word_prefers_depends_on_itself_as_well():
    """The leaky ReLU acts on the sum of both parts: without it the receiver's would cancel in the
    softmax."""
    layer = small(GraphAttention, WIDTH, hidden=3, heads=1, dropout=0.0, stretch=1.0)
    states, everyone = torch.randn(1, 8, WIDTH), torch.ones(1, 8, 8, dtype=torch.bool)
    assert layer(states, everyone)[0, 0].std(0).max() > 0.01


def test_the_order_of_the_nodes_changes_nothing():
    model, batch = model_of(), graphs_of(fitted(WordGraphs(min_count=1)), *TEXTS, width=WIDTH)
    assert_same(model(renumbered(batch)), model(batch))


def test_how_often_words_are_near_does_not_count():
    model, batch = model_of(), graphs_of(fitted(WordGraphs(min_count=1)), *TEXTS, width=WIDTH)
    assert_same(model(batch._replace(counts=batch.counts * 7)), model(batch))


def test_both_layers_have_eight_heads_and_start_as_the_authors():
    """Each head has a matrix of its own, whose limit does not depend on the number of heads."""
    model = GraphAttentionNetwork(300)
    assert model.view == WordGraphs(reach=3) and model.size == 64
    assert model.first.project.weight.shape == (8 * 8, 300) and model.first.project.bias is None
    assert model.last.project.weight.shape == (8 * 64, 64)
    for weight, limit in ((model.first.project.weight, (6 / 308) ** 0.5), (model.first.sender, (6 / 9) ** 0.5)):
        assert 0.93 * limit < weight.abs().max() <= limit


def test_more_than_half_of_states_and_weights_is_dropped_in_training():
    model, batch = model_of(), graphs_of(fitted(WordGraphs(min_count=1)), *TEXTS, width=WIDTH)
    seen: list[Tensor] = []
    for layer in (model.first, model.last):
        layer.dropout.register_forward_hook(lambda layer, inputs, output: seen.extend([*inputs, output]))
    model.train()(batch)
    nodes = batch.mask.shape[1]
    assert [tuple(states.shape[1:]) for states in seen[::2]] == [
        (nodes, WIDTH),
        (8, nodes, nodes),
        (nodes, 64),
        (8, nodes, nodes),
    ]
    for before, after in zip(seen[::2], seen[1::2], strict=True):
        assert 0.4 < (after[before != 0] == 0).float().mean() < 0.8
    torch.testing.assert_close(seen[2].sum(3), torch.ones(len(TEXTS), 8, nodes))
