"""Small trees whose leaves have known word vectors, and the recursion node by node."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from harness.views.tree import TreeBatch, Trees, parse

TREES = [
    "(3 (2 a) (4 (3 very) (4 fine)))",
    "(2 fine)",
    "(1 (1 (0 (2 not) (2 a)) (2 (2 very) (2 fine))) (2 not))",
    "(1 (2 not) (2 a))",
]
WORDS = ("a", "fine", "not", "very")
WIDTH = 3
VECTORS = torch.randn(len(WORDS), WIDTH, generator=torch.Generator().manual_seed(5))

State = TypeVar("State")


def trees_of(*trees: str, vectors: Tensor = VECTORS) -> TreeBatch:
    """The trees as one batch whose leaves have the ``vectors`` of :data:`WORDS`."""
    view = Trees(min_count=1)
    view.fit(TREES)
    read = view.collate(view.encode(trees), np.arange(len(trees)))
    spelt = [view.vocabulary.words[id - 2] for id in read.ids.tolist()]
    return read._replace(vectors=torch.stack([vectors[WORDS.index(word)] for word in spelt]))


def node_by_node(tree: str, leaf: Callable[[Tensor], State], parent: Callable[[State, State], State]) -> list[State]:
    """What ``leaf`` makes of a word's vector, and ``parent`` of its two children, at each node of a
    tree in the order of the batch."""
    nodes, words = parse(tree), iter(parse(tree).words)
    states: list[State] = []
    for left, right in zip(nodes.left, nodes.right, strict=True):
        made = leaf(VECTORS[WORDS.index(next(words))]) if left < 0 else parent(states[left], states[right])
        states.append(made)
    return states
