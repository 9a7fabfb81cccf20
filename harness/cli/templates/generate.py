"""My model: one sentence on what it is."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from harness.kinds import Generator
from harness.layers.attention import masked_softmax
from harness.registry import Recipe, register


class State(NamedTuple):
    """State (B, hidden) of the decoder, and the source: states (B, S, hidden), mask (B, S)."""

    hidden: Tensor
    source: Tensor
    mask: Tensor


@register(
    "my_model",
    name="My model",
    kind="generate",
    paper="Author & Author 2000",
    source="section or equation that this follows",
    year=2000,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=32, epochs=10),
    tiny={"hidden": 96},
)
class MyModel(Generator):
    """A bidirectional GRU reads the source. From its end states a second one writes, which reads
    its last symbol and attends over the source. Say here what the paper does, and where."""

    def __init__(self, width: int, symbols: int, hidden: int = 200, dropout: float = 0.2):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.encoder = nn.GRU(width, hidden // 2, bidirectional=True, batch_first=True)
        self.symbols = nn.Embedding(symbols, hidden)
        self.decoder = nn.GRUCell(2 * hidden, hidden)
        self.output = nn.Linear(hidden, symbols)

    def start(self, vectors: Tensor, mask: Tensor) -> State:
        # Packed, so that the backward direction begins at the last word and not in the padding.
        lengths = mask.sum(1).cpu()
        packed = pack_padded_sequence(self.dropout(vectors), lengths, batch_first=True, enforce_sorted=False)
        states, ends = self.encoder(packed)
        source, _ = pad_packed_sequence(states, batch_first=True, total_length=mask.shape[1])
        return State(ends.transpose(0, 1).flatten(1), source, mask)

    def advance(self, symbols: Tensor, state: State) -> tuple[Tensor, State]:
        """Scores (B, symbols) of the next symbol after reading symbols (B,), and the new state."""
        attention = masked_softmax((state.source @ state.hidden[:, :, None]).squeeze(2), state.mask)
        context = (attention[:, None] @ state.source).squeeze(1)
        hidden = self.decoder(torch.cat([self.symbols(symbols), context], dim=1), state.hidden)
        return self.output(hidden), state._replace(hidden=hidden)

    def forward(self, vectors: Tensor, mask: Tensor, prefix: Tensor) -> Tensor:
        state, scores = self.start(vectors, mask), []
        for symbols in prefix.unbind(1):
            step, state = self.advance(symbols, state)
            scores.append(step)
        return torch.stack(scores, dim=1)

    def step(self, symbols: Tensor, state: State) -> tuple[Tensor, State]:
        scores, state = self.advance(symbols, state)
        return scores.log_softmax(-1), state
