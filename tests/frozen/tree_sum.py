"""A recursive network over binary trees."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from harness.kinds import TreeEncoder
from harness.registry import Recipe, register
from harness.views.tree import TreeBatch, Trees


@register(
    "frozen_tree",
    name="Recursive network",
    kind="tree",
    paper="Nobody 2013",
    source="equation 2",
    year=2013,
    recipe=Recipe(optimizer="adagrad", lr=0.05, batch_size=25, weight_decay=0.0001),
    tiny={"hidden": 16},
)
class RecursiveNetwork(TreeEncoder):
    """h = tanh(W [left, right]) up the tree, all nodes of one height at once."""

    view = Trees(min_count=1)

    def __init__(self, width: int, hidden: int = 64):
        super().__init__()
        self.leaf, self.inner = nn.Linear(width, hidden), nn.Linear(2 * hidden, hidden)
        self.size = hidden

    def nodes(self, trees: TreeBatch) -> Tensor:
        open_nodes = torch.tanh(self.leaf(trees.vectors))
        order, states = [trees.leaf_nodes], [open_nodes]
        for level in trees.levels:
            children = torch.cat([open_nodes[level.left], open_nodes[level.right]], dim=1)
            order.append(level.parents)
            states.append(torch.tanh(self.inner(children)))
            open_nodes = torch.cat([states[-1], open_nodes[level.staying]])
        found = torch.cat(states)
        return torch.empty_like(found).index_copy(0, torch.cat(order), found)
