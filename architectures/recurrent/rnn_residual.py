"""Stacked recurrent layers with a shortcut around each."""

from __future__ import annotations

from torch import Tensor, nn

from architectures.blocks.recurrent import CELLS
from harness.kinds import SequenceEncoder
from harness.registry import Recipe, register


@register(
    "rnn_residual",
    name="Stacked RNN with residual connections",
    kind="seq",
    paper="Xiao & Zhu eq. 4.16",
    source="X4.2.3",
    year=2016,
    recipe=Recipe(optimizer="adam", lr=0.001, clip=5.0),
    tiny={"hidden": 16, "layers": 2},
    deviations=(
        (
            "The recurrence of a layer sees its own state, as fused layers do; eq. 4.16, read literally, feeds the sum"
            " with the layer's input back to it."
        ),
        "The source names no sizes: 4 layers of 300, the mean of the states, dropout of 0.1 and Adam are ours.",
    ),
    variants={
        "rnn_residual_lstm": {"name": "Stacked LSTM with residual connections", "hyperparameters": {"cell": "lstm"}},
        "rnn_residual_gru": {"name": "Stacked GRU with residual connections", "hyperparameters": {"cell": "gru"}},
    },
)
class ResidualRNN(SequenceEncoder):
    """h^{l+1}_i = RNN(h^l)_i + h^l_i: each layer adds its states to what it reads (source text 4,
    eq. 4.16).

    ``cell`` is ``rnn`` (tanh, without a bias, as eq. 4.6), ``lstm`` or ``gru``; a cell's state is
    that of the library, and the sum is made outside the recurrence. Word vectors of another size
    than ``hidden`` pass a matrix first. Dropout acts on the word vectors and on what each further
    layer reads, never on the shortcut.
    """

    def __init__(
        self,
        width: int,
        hidden: int = 300,
        layers: int = 4,
        cell: str = "rnn",
        pooling: str = "mean",
        dropout: float = 0.1,
    ):
        super().__init__()
        if cell not in CELLS:
            raise ValueError(f"rnn_residual: cell={cell!r} is none of {', '.join(CELLS)}")
        self.pooling = pooling
        self.project = nn.Identity() if width == hidden else nn.Linear(width, hidden, bias=False)
        self.layers = nn.ModuleList(
            CELLS[cell](hidden, hidden, batch_first=True, bias=cell != "rnn") for _ in range(layers)
        )
        self.dropout = nn.Dropout(dropout)
        self.size = hidden

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        states = self.project(self.dropout(vectors))
        for number, layer in enumerate(self.layers):
            inputs = self.dropout(states) if number else states
            states = layer(inputs)[0] + states
        return states
