"""My model: one sentence on what it is."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from harness.kinds import TreeEncoder
from harness.registry import Recipe, register
from harness.views.tree import TreeBatch, Trees


@register(
    "my_model",
    name="My model",
    kind="tree",
    paper="Author & Author 2000",
    source="section or equation that this follows",
    year=2000,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=32, epochs=10),
    tiny={"hidden": 8},
)
class MyModel(TreeEncoder):
    """The state of a node is a layer over the states of its two children; a leaf reads its word.

    Say here what the paper does, and where.
    """

    view = Trees()

    def __init__(self, width: int, hidden: int = 100, dropout: float = 0.2):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.leaf = nn.Linear(width, hidden)
        self.parent = nn.Linear(2 * hidden, hidden)
        self.size = hidden

    def nodes(self, trees: TreeBatch) -> Tensor:
        # Level by level, from the leaves up. `waiting` are the states whose parent is still to
        # come.
        waiting = torch.tanh(self.leaf(self.dropout(trees.vectors)))
        levels, nodes = [waiting], [trees.leaf_nodes]
        for level in trees.levels:
            pairs = torch.cat([waiting[level.left], waiting[level.right]], dim=1)
            parents = torch.tanh(self.parent(pairs))
            waiting = torch.cat([parents, waiting[level.staying]])
            levels.append(parents)
            nodes.append(level.parents)
        return torch.cat(levels)[torch.cat(nodes).argsort()]
