"""Recursive neural networks over binary trees: plain, and with a tensor."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from architectures.blocks.trees import bottom_up
from harness.kinds import TreeEncoder
from harness.registry import Recipe, register
from harness.views.tree import TreeBatch, Trees


@register(
    "recursive_nn",
    name="Recursive neural network",
    kind="tree",
    paper="Socher et al. 2013",
    source="M2.2[43]",
    year=2013,
    sees=("labels of phrases",),
    recipe=Recipe(
        optimizer="adagrad",
        lr=0.01,
        batch_size=27,
        weight_decay=0.001,
        decay_exempt=("vectors",),
        eps=0.001,
        epochs=400,
        vector_dims=25,
        reduction="sentence",
    ),
    tiny={"size": 12},
    deviations=(
        "One L2 penalty for all but word vectors; the authors' code has a tenth of it for these and the softmax, and"
        " none for the softmax's bias.",
        "AdaGrad's sums are never reset; the authors' code does so after every epoch.",
        "Word vectors start as everywhere here; the authors' code starts them within 0.001 of zero.",
        "Word vectors of another size than the nodes pass a matrix first.",
    ),
    variants={
        "rntn": {
            "name": "Recursive neural tensor network (RNTN)",
            "hyperparameters": {"tensor": True},
        }
    },
)
class RecursiveNetwork(TreeEncoder):
    """p = tanh(W [a; b] + bias): a node from its two children by one matrix, up to the root.

    With ``tensor`` p = tanh([a; b]^T V [a; b] + W [a; b] + bias), where V holds a bilinear form for
    each number of p: (``size``, 2 size, 2 size). A leaf is tanh of its word vector. W starts near
    two unit matrices, so that a node starts near the sum of its children. The softmax reads every
    node, and training has a loss at each whose label is known.
    """

    view = Trees()

    def __init__(self, width: int, size: int = 25, tensor: bool = False):
        super().__init__()
        self.project = nn.Identity() if width == size else nn.Linear(width, size, bias=False)
        self.matrix = nn.Linear(2 * size, size)
        limit = 1 / (2 * math.sqrt(size))
        with torch.no_grad():
            self.matrix.weight.uniform_(-limit, limit).add_(torch.eye(size).repeat(1, 2))
            self.matrix.bias.zero_()
        self.tensor = None
        if tensor:
            self.tensor = nn.Parameter(torch.empty(size, 2 * size, 2 * size).uniform_(-1 / (4 * size), 1 / (4 * size)))
        self.size = size

    def parent(self, left: Tensor, right: Tensor) -> Tensor:
        """Nodes (n, size) from their children (n, size)."""
        children = torch.cat([left, right], dim=1)
        sums = self.matrix(children)
        if self.tensor is not None:
            forms = (children @ self.tensor.flatten(0, 1).T).unflatten(1, (self.size, -1))
            sums = sums + (forms @ children[..., None]).squeeze(2)
        return torch.tanh(sums)

    def nodes(self, trees: TreeBatch) -> Tensor:
        return bottom_up(trees, torch.tanh(self.project(trees.vectors)), self.parent)
