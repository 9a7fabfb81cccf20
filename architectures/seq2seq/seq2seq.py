"""Encoder-decoder that hands the whole source to the decoder in the encoder's last states."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor, nn

from architectures.blocks.packed_lstm import PackedLSTM
from architectures.blocks.recurrent import reverse
from harness.kinds import Generator
from harness.registry import Recipe, register


class DecoderState(NamedTuple):
    """States and cells (B, layers, hidden) of all layers."""

    hidden: Tensor
    cell: Tensor


@register(
    "seq2seq",
    name="LSTM encoder-decoder",
    kind="generate",
    paper="Sutskever et al. 2014",
    source="Z16.1.1 R25.3 M-A.4",
    year=2014,
    recipe=Recipe(
        optimizer="sgd",
        lr=0.7,
        batch_size=128,
        epochs=8,
        clip=5.0,
        lr_schedule="step",
        step_start=5.0,
        step_epochs=0.5,
        reduction="sentence",
        vector_dims=1000,
    ),
    tiny={"hidden": 48, "layers": 1, "symbol_size": 24, "limit": 0.2},
    deviations=(
        "Trains for 8 epochs, the paper for 7.5.",
        "The source's vectors start as the harness makes them, within +-0.25.",
        "Greedy by default, because dev is decoded after each epoch; the paper searches with a beam of 2 or 12.",
    ),
)
class Seq2Seq(Generator):
    """A stacked LSTM reads the source BACKWARDS; a second one, begun with its last states and cells
    layer by layer, writes the target.

    So the first words of source and target stand near each other, and nothing else of the source
    reaches the decoder. Decoder state i reads symbol i and scores symbol i + 1. All weights but
    the source's vectors start uniform within +- ``limit``. Slow, because of its size: 60 million
    weights.
    """

    def __init__(
        self,
        width: int,
        symbols: int,
        hidden: int = 1000,
        layers: int = 4,
        symbol_size: int = 1000,
        limit: float = 0.08,
        beam: int = 1,
    ):
        super().__init__()
        self.beam = beam
        self.encoder = PackedLSTM(width, hidden, layers)
        self.vectors_of_symbols = nn.Embedding(symbols, symbol_size)
        self.decoder = nn.LSTM(symbol_size, hidden, layers, batch_first=True)
        self.output = nn.Linear(hidden, symbols)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -limit, limit)

    def start(self, vectors: Tensor, mask: Tensor) -> DecoderState:
        _, hidden, cell = self.encoder(reverse(vectors, mask), mask)
        return DecoderState(hidden, cell)

    def read(self, symbols: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """Scores (B, U, symbols) after each of the symbols (B, U), and the state behind the last
        one."""
        before = state.hidden.transpose(0, 1).contiguous(), state.cell.transpose(0, 1).contiguous()
        states, (hidden, cell) = self.decoder(self.vectors_of_symbols(symbols), before)
        return self.output(states), DecoderState(hidden.transpose(0, 1), cell.transpose(0, 1))

    def forward(self, vectors: Tensor, mask: Tensor, prefix: Tensor) -> Tensor:
        return self.read(prefix, self.start(vectors, mask))[0]

    def step(self, symbols: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        scores, state = self.read(symbols[:, None], state)
        return scores.squeeze(1).log_softmax(-1), state
