"""Elman's recurrent network."""

from __future__ import annotations

from torch import Tensor, nn

from architectures.blocks.recurrent import Recurrent
from harness.kinds import SequenceEncoder
from harness.registry import Recipe, register


@register(
    "rnn",
    name="Vanilla RNN",
    kind="seq",
    paper="Elman 1990; Mikolov et al. 2010",
    source="X4.2.1 R25.2 M-A.2",
    year=1990,
    recipe=Recipe(optimizer="sgd", lr=0.1, batch_size=16, clip=5.0, vector_dims=100),
    tiny={"hidden": 16},
    deviations=("Dropout on the input vectors, and 200 units, are ours.",),
)
class ElmanRNN(SequenceEncoder):
    """h_i = tanh(h_{i-1} U + x_i V) from h_0 = 0, without a bias (source text 4, eq. 4.6).

    ``pooling`` is how a text's vector comes from the states: ``last``, ``mean`` or ``max``. Long
    products of U need clipped gradients.
    """

    def __init__(self, width: int, hidden: int = 200, layers: int = 1, pooling: str = "last", dropout: float = 0.1):
        super().__init__()
        self.pooling = pooling
        self.dropout = nn.Dropout(dropout)
        self.recurrence = Recurrent("rnn", width, hidden, layers, dropout=dropout, bias=False)
        self.size = self.recurrence.size

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        return self.recurrence(self.dropout(vectors), mask)
