"""Bidirectional Elman network."""

from __future__ import annotations

from torch import Tensor, nn

from architectures.blocks.recurrent import Recurrent
from harness.kinds import SequenceEncoder
from harness.registry import Recipe, register


@register(
    "birnn",
    name="Bidirectional RNN",
    kind="seq",
    paper="Schuster & Paliwal 1997",
    source="X4.2.4 R25.2.2",
    year=1997,
    recipe=Recipe(optimizer="sgd", lr=0.1, batch_size=16, clip=5.0, vector_dims=100),
    tiny={"hidden": 12},
    deviations=("Training, dropout on the input vectors, and 200 units each way, are ours.",),
)
class BidirectionalRNN(SequenceEncoder):
    """Left-to-right and right-to-left states h_i = tanh(h_{i-1} U + x_i V), each with its own U and
    V, concatenated at each position.

    A layer's states in both directions feed both directions of the next. ``pooling`` is ``mean``,
    ``max`` or ``ends`` (the last state of each direction).
    """

    def __init__(self, width: int, hidden: int = 200, layers: int = 1, pooling: str = "mean", dropout: float = 0.1):
        super().__init__()
        self.pooling = pooling
        self.dropout = nn.Dropout(dropout)
        self.recurrence = Recurrent("rnn", width, hidden, layers, bidirectional=True, dropout=dropout, bias=False)
        self.size = self.recurrence.size

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        return self.recurrence(self.dropout(vectors), mask)
