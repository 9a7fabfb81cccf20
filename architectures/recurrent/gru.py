"""Gated recurrent unit, left to right."""

from __future__ import annotations

from torch import Tensor, nn

from architectures.blocks.recurrent import Recurrent
from harness.kinds import SequenceEncoder
from harness.registry import Recipe, register


@register(
    "gru",
    name="GRU",
    kind="seq",
    paper="Cho et al. 2014",
    source="X4.3.3",
    year=2014,
    recipe=Recipe(optimizer="adam", lr=0.001, clip=5.0),
    tiny={"hidden": 16},
    deviations=(
        (
            "PyTorch's GRU resets the state behind the recurrent matrix, r * (h_{i-1} U + b), and not before it, (r *"
            " h_{i-1}) U."
        ),
        "Each gate has two bias vectors, as in that layer; its update gate is 1 - u, which only renames it.",
        "Dropout on the input vectors, 300 units and Adam are ours.",
    ),
)
class GRU(SequenceEncoder):
    """h_i = u * candidate + (1 - u) * h_{i-1} (source text 4, eq. 4.30): no memory cell, and one
    gate both writes and forgets.

    The candidate is tanh of the word and of what the reset gate r leaves of h_{i-1}; r and u are
    logistic in h_{i-1} and x_i. ``pooling`` is ``last``, ``mean`` or ``max``.
    """

    def __init__(self, width: int, hidden: int = 300, layers: int = 1, pooling: str = "last", dropout: float = 0.1):
        super().__init__()
        self.pooling = pooling
        self.dropout = nn.Dropout(dropout)
        self.recurrence = Recurrent("gru", width, hidden, layers, dropout=dropout)
        self.size = self.recurrence.size

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        return self.recurrence(self.dropout(vectors), mask)
