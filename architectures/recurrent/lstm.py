"""Long short-term memory, left to right."""

from __future__ import annotations

from torch import Tensor, nn

from architectures.blocks.recurrent import Recurrent
from harness.kinds import SequenceEncoder
from harness.registry import Recipe, register


@register(
    "lstm",
    name="LSTM",
    kind="seq",
    paper="Hochreiter & Schmidhuber 1997; Gers et al. 2000",
    source="X4.3.2 R25.2.3 M-A.2",
    year=1997,
    recipe=Recipe(optimizer="adam", lr=0.001, clip=5.0),
    tiny={"hidden": 16},
    deviations=(
        "Dropout on the input vectors, and 300 units, are ours.",
        "Each gate has two bias vectors, as PyTorch's fused layer does, which is one bias with twice the step.",
    ),
)
class LSTM(SequenceEncoder):
    """c_i = f * c_{i-1} + g * tanh(h_{i-1} U_c + x_i V_c + b_c), h_i = o * tanh(c_i), with logistic
    gates f, g, o and no peepholes.

    The gates read h_{i-1} and x_i; the forget gate starts without an extra bias. ``pooling`` is
    ``last``, ``mean`` or ``max``.
    """

    def __init__(self, width: int, hidden: int = 300, layers: int = 1, pooling: str = "last", dropout: float = 0.1):
        super().__init__()
        self.pooling = pooling
        self.dropout = nn.Dropout(dropout)
        self.recurrence = Recurrent("lstm", width, hidden, layers, dropout=dropout)
        self.size = self.recurrence.size

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        return self.recurrence(self.dropout(vectors), mask)
