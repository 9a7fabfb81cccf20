"""Tree-LSTM on SST (the mini corpus where SST is not at hand): trees level by level beside the same
cell node by node.

Batches of 64 as in training, of trees of similar length; forward and backward through the encoder,
vectors included.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from architectures.recurrent.tree_lstm import TreeLSTM
from harness import registry
from harness.data.batches import Batches
from harness.views.tree import Tree, TreeBatch, Trees, parse

WIDTH = 100
BATCHES = 2


@pytest.fixture(scope="module")
def texts(corpora_if_any: Path | None) -> list[str]:
    """Bracketed trees of the dev split."""
    entry = registry.entry("tasks", "sst5")
    return registry.load(entry)(entry).load("dev", "local" if corpora_if_any else "mini", corpora_if_any)["tree"]


@pytest.fixture(scope="module")
def batches(texts: list[str]) -> list[tuple[TreeBatch, list[Tree]]]:
    """Batches with random word vectors, and their trees."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    view = Trees()
    view.fit(texts)
    columns, made = view.encode(texts), []
    drawn = iter(Batches(view.lengths(columns), 64, lambda rows: rows, seed=0))
    for rows in (next(drawn) for _ in range(BATCHES)):
        batch = view.collate(columns, rows)
        vectors = torch.randn(len(batch.ids), WIDTH, requires_grad=True)
        made.append((batch._replace(vectors=vectors), [parse(texts[row]) for row in rows]))
    return made


def node_by_node(model: TreeLSTM, vectors: Tensor, trees: list[Tree]) -> Tensor:
    """States of all nodes, computed one after the other as a recursion over each tree does."""
    words, states = iter(vectors.split(1)), []
    for tree in trees:
        first = len(states)
        for left, right in zip(tree.left, tree.right, strict=True):
            states.append(
                model.leaf(next(words)) if left < 0 else model.parent(states[first + left], states[first + right])
            )
    return torch.cat(states)[:, : model.size]


def test_trees_level_by_level(beside, benchmark, batches, corpora_if_any: Path | None) -> None:
    model = TreeLSTM(WIDTH).eval()  # No dropout: both sides give the same.
    weights = list(model.parameters())

    exact, (batch, trees) = TreeLSTM(WIDTH).double().eval(), batches[0]
    vectors = batch.vectors.detach().double().requires_grad_()
    found, expected = exact.nodes(batch._replace(vectors=vectors)), node_by_node(exact, vectors, trees)
    torch.testing.assert_close(found, expected)
    ours, theirs = (
        torch.autograd.grad(states.square().sum(), [vectors, *exact.parameters()]) for states in (found, expected)
    )
    torch.testing.assert_close(ours, theirs)

    def level_by_level() -> None:
        for batch, _ in batches:
            torch.autograd.grad(model.nodes(batch).square().sum(), [batch.vectors, *weights])

    def one_by_one() -> None:
        for batch, trees in batches:
            torch.autograd.grad(node_by_node(model, batch.vectors, trees).square().sum(), [batch.vectors, *weights])

    name = "SST" if corpora_if_any else "mini"
    what, against = f"tree_lstm trees/s, {name} trees, batch 64", "the same cell node by node"
    why = "products of matrices are 39 % of our time, what is left is elementwise and autograd's, in small levels"
    beside(what, against, 20.0, level_by_level, one_by_one, rounds=4, why=why)
    benchmark.extra_info["trees_per_second"] = 64 * BATCHES / benchmark.stats.stats.median
