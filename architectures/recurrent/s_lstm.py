"""Long short-term memory over recursive structures."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.blocks.trees import bottom_up
from harness.kinds import TreeEncoder
from harness.registry import Recipe, register
from harness.views.tree import TreeBatch, Trees


@register(
    "s_lstm",
    name="LSTM over recursive structures (S-LSTM)",
    kind="tree",
    paper="Zhu et al. 2015",
    source="M2.2[34]",
    year=2015,
    sees=("labels of phrases",),
    recipe=Recipe(
        optimizer="adagrad",
        lr=0.05,
        batch_size=25,
        weight_decay=0.0001,
        decay_exempt=("vectors",),
        vector_dims=100,
        reduction="sentence",
    ),
    tiny={"hidden": 16},
    deviations=(
        "A leaf is tanh of its word vector, as in Socher et al. 2013, whose layers the paper replaces; its cell is 0.",
        "Word vectors of another size than the states pass a matrix first.",
        "Only the equations are known to us: 100 units, and training and dropout as in Tai et al. 2015, are ours.",
    ),
)
class StructuralLSTM(TreeEncoder):
    """c = f_L * c_L + f_R * c_R + i * x, h = o * tanh(c): a memory that reaches the root through a
    forget gate for each child.

    i, f_L and f_R are logistic in both children's states and, by peepholes, in both memory cells; o
    in both states and the new cell; x is tanh of both states. Each has matrices of its own, for the
    cells too. All nodes of one height are computed at once. Dropout acts before the softmax.
    """

    view = Trees()

    def __init__(self, width: int, hidden: int = 100, dropout: float = 0.5):
        super().__init__()
        self.project = nn.Identity() if width == hidden else nn.Linear(width, hidden, bias=False)
        self.states = nn.Linear(2 * hidden, 5 * hidden)
        self.cells = nn.Linear(2 * hidden, 3 * hidden, bias=False)
        self.peephole = nn.Linear(hidden, hidden, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.size = hidden

    def parent(self, left: Tensor, right: Tensor) -> Tensor:
        """States and cells [h, c] of nodes (n, 2 * hidden) from their children's."""
        (h_left, c_left), (h_right, c_right) = left.chunk(2, dim=1), right.chunk(2, dim=1)
        *gates, x, o = self.states(torch.cat([h_left, h_right], dim=1)).chunk(5, dim=1)
        peeps = self.cells(torch.cat([c_left, c_right], dim=1)).chunk(3, dim=1)
        i, f_left, f_right = (torch.sigmoid(gate + peep) for gate, peep in zip(gates, peeps, strict=True))
        cell = f_left * c_left + f_right * c_right + i * torch.tanh(x)
        return torch.cat([torch.sigmoid(o + self.peephole(cell)) * torch.tanh(cell), cell], dim=1)

    def nodes(self, trees: TreeBatch) -> Tensor:
        words = torch.tanh(self.project(trees.vectors))
        leaves = torch.cat([words, torch.zeros_like(words)], dim=1)
        return self.dropout(bottom_up(trees, leaves, self.parent)[:, : self.size])
