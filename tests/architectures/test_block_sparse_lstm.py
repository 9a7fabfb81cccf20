"""The mechanism of the block-sparse LSTM: recurrent matrices that have the blocks of a graph
alone."""

from __future__ import annotations

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from architectures.recurrent.block_sparse_lstm import BlockSparse, BlockSparseLSTM, barabasi_albert
from tests.support.batches import assert_each_alone, random_texts
from tests.support.models import small
from tests.support.recurrent import assert_vector_comes_from_real_states
from tests.support.same import assert_same

WIDTH, HIDDEN, BLOCK = 3, 10, 2

texts = partial(random_texts, (6, 3, 1), 1, WIDTH)
model_of = partial(small, BlockSparseLSTM, WIDTH, hidden=HIDDEN, block=BLOCK, links=1, steps=3)


def dense(layer: BlockSparse) -> Tensor:
    """The matrices (outputs, n, n) of a layer with zeros where a block does not exist."""
    n, size = layer.nodes * layer.block, layer.block
    matrices = torch.zeros(len(layer.norms), n, n)
    for row, column, block in zip(layer.rows, layer.columns, layer.blocks, strict=True):
        for output, part in enumerate(block.split(size, dim=1)):
            matrices[output, row * size : (row + 1) * size, column * size : (column + 1) * size] = part.T
    return matrices


def normed(layer: torch.nn.LayerNorm, vector: Tensor) -> Tensor:
    centred = vector - vector.mean()
    return centred / ((centred**2).mean() + layer.eps).sqrt() * layer.weight + layer.bias


def written_out(model: BlockSparseLSTM, vectors: Tensor) -> Tensor:
    """States (n, HIDDEN) of one text with dense matrices."""
    h = c = torch.zeros(HIDDEN)
    states = []
    for x in vectors:
        factor, term = (normed(norm, linear.weight @ x) for linear, norm in (model.multiplied, model.added))
        first, second, third = model.inner
        u = normed(first.norms[0], dense(first)[0] @ h) * factor
        u = (normed(second.norms[0], dense(second)[0] @ u) + term).clamp(min=0)
        u = normed(third.norms[0], dense(third)[0] @ u).clamp(min=0)
        gates = zip(model.gates.norms, dense(model.gates), strict=True)
        i, f, o, g = (normed(norm, matrix @ u) for norm, matrix in gates)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        states.append(h)
    return torch.stack(states)


def test_a_batch_is_each_text_written_out_with_dense_matrices():
    """A block in another place, a missing normalisation, ReLU or step, or gates in each other's
    place would each give other states."""
    model, batch = model_of(), texts()
    assert_each_alone(
        model(batch.vectors, batch.mask), partial(written_out, model), batch, states=True, atol=1e-4, rtol=1e-4
    )


@pytest.mark.parametrize("outputs", [1, 4])
def test_the_product_of_blocks_is_that_of_the_dense_matrix_times_the_pattern(outputs):
    adjacency = torch.tensor([[1, 0, 1], [0, 1, 0], [1, 1, 1]], dtype=torch.bool)
    layer, states = BlockSparse(adjacency, 2, outputs), torch.randn(4, 6)
    pattern = adjacency.repeat_interleave(2, 0).repeat_interleave(2, 1)
    matrices = dense(layer)
    assert torch.equal(matrices != 0, pattern.expand_as(matrices))
    assert_same(layer.product(states), torch.einsum("oij,bj->boi", matrices, states))


def test_no_step_of_the_optimiser_makes_a_block_that_did_not_exist():
    """Not in the weights, and not in Adam's moments: neither has a place for one."""
    model, batch = model_of(), texts()
    patterns = [dense(layer) != 0 for layer in [*model.inner, model.gates]]
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for _ in range(10):
        optimizer.zero_grad()
        model(batch.vectors, batch.mask).square().sum().backward()
        optimizer.step()
    for layer, pattern in zip([*model.inner, model.gates], patterns, strict=True):
        assert torch.equal(dense(layer) != 0, pattern)
        assert optimizer.state[layer.blocks]["exp_avg"].numel() == pattern.sum()


@pytest.mark.parametrize(("nodes", "links"), [(2, 1), (6, 1), (20, 2), (20, 5)])
def test_the_graph_is_symmetric_and_grown_by_so_many_links_a_node(nodes, links):
    graph = barabasi_albert(nodes, links)
    assert torch.equal(graph, graph.T) and graph.diagonal().all() and graph[:links, :links].all()
    assert graph.sum() == 2 * links * (nodes - links) + nodes + links * (links - 1)
    assert all(graph[node, :node].sum() == links for node in range(links, nodes))


def test_nodes_with_many_links_get_more_of_them():
    """By the number of links an early node has far more than its share of a uniform draw."""
    degrees = torch.stack([barabasi_albert(60, 1).sum(1) for _ in range(40)]).float().mean(0)
    uniform = 1 + torch.tensor([1 / n for n in range(1, 60)]).sum()
    assert degrees[:2].mean() > 1.5 * uniform
    assert degrees[30:].mean() < 4


def test_the_matrices_have_graphs_of_their_own_and_together_link_each_unit_to_all():
    model = BlockSparseLSTM(WIDTH)
    patterns = [dense(layer)[0].bool() for layer in [*model.inner, model.gates]]
    assert not torch.equal(patterns[0], patterns[1])
    assert patterns[0].float().mean() < 0.25 and len(patterns) == 6
    reached = torch.eye(640)
    for pattern in patterns:
        reached = (pattern.float() @ reached).clamp(max=1)
    assert reached.all()


def test_the_forget_gate_starts_open_and_the_dropped_is_the_candidate():
    """A candidate of which all is dropped writes nothing, and its gates are whole."""
    model = BlockSparseLSTM(WIDTH, hidden=HIDDEN, block=BLOCK, dropout=1.0)
    assert [norm.bias.unique().tolist() for norm in model.gates.norms] == [[0.0], [1.0], [0.0], [0.0]]
    batch = texts()
    assert not model.train()(batch.vectors, batch.mask).any()
    assert model.eval()(batch.vectors, batch.mask).any()
    assert F.dropout(torch.ones(2), 1.0).sum() == 0


def test_a_texts_vector_is_the_mean_of_its_real_states():
    assert BlockSparseLSTM.pooling == "mean"
    assert_vector_comes_from_real_states(model_of(), written_out, "mean", texts())


def test_sizes_that_make_no_blocks_are_refused():
    for wrong in ({"hidden": 33, "block": 8}, {"hidden": 16, "block": 8, "links": 2}, {"steps": 1}):
        with pytest.raises(ValueError, match="block_sparse_lstm: hidden="):
            BlockSparseLSTM(WIDTH, **wrong)
