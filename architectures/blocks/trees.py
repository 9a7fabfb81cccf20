"""Recursion over the trees of a batch."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from harness.views.tree import TreeBatch


def bottom_up(trees: TreeBatch, leaves: Tensor, parent: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """States (N, size) of all nodes from those of the leaves (L, size): ``parent`` makes those of
    nodes (n, size) from their left and right children's, all nodes of one height at once."""
    open_nodes = leaves
    order, states = [trees.leaf_nodes], [leaves]
    for parents, *places in trees.levels:
        left, right, staying = open_nodes.index_select(0, torch.cat(places)).split([len(place) for place in places])
        order.append(parents)
        states.append(parent(left, right))
        open_nodes = torch.cat([states[-1], staying])
    joined = torch.cat(states)
    return torch.empty_like(joined).index_copy(0, torch.cat(order), joined)
