"""The mechanism of my model: each test fails when what defines the model is taken out."""

from __future__ import annotations

import numpy as np
import torch

from harness import registry
from harness.views.tree import Trees


def build(**hyperparameters):
    """The model on vectors of two numbers, without dropout."""
    torch.manual_seed(0)
    cls = registry.load(registry.entry("architectures", "my_model"))
    return cls(width=2, hidden=3, **hyperparameters).eval()


def test_a_state_sees_its_own_subtree_and_no_more():
    view = Trees(min_count=1)
    view.fit(["(2 (2 a) (2 (2 b) (2 c)))"])
    trees = view.collate(view.encode(["(2 (2 a) (2 (2 b) (2 c)))"]), np.arange(1))
    model, vectors = build(), torch.randn(3, 2)
    changed = vectors.clone()
    changed[1] += 1.0  # the word b
    states = [model.nodes(trees._replace(vectors=words)) for words in (vectors, changed)]
    moved = (states[0] - states[1]).abs().sum(-1) > 1e-6
    a, b, c = trees.leaf_nodes.tolist()
    assert {node for node in range(5) if moved[node]} == set(range(5)) - {a, c}
    assert moved[b] and moved[trees.roots[0]]
