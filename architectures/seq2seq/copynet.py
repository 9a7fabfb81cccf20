"""Encoder-decoder that generates and copies under one softmax, and reads where it copied from."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from architectures.blocks.copying import LEAST, as_symbols, joined
from architectures.blocks.recurrent import Recurrent
from harness.kinds import CopyingGenerator
from harness.layers.attention import masked_softmax
from harness.registry import Recipe, register


class Memory(NamedTuple):
    """The encoded source: ``states`` (B, S, E), the ``keys`` (B, S, hidden) that attention compares
    with and those that copying does, ``mask``, and the words' ``numbers`` (B, S)."""

    states: Tensor
    keys: Tensor
    copy_keys: Tensor
    mask: Tensor
    numbers: Tensor


class DecoderState(NamedTuple):
    """State (B, hidden) of the decoder, the probabilities (B, S) with which it last copied each
    place, and the source."""

    hidden: Tensor
    copied: Tensor
    memory: Memory


@register(
    "copynet",
    name="CopyNet",
    kind="generate",
    paper="Gu et al. 2016",
    source="Z16.1.3",
    year=2016,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=20, epochs=10, vector_dims=500, reduction="sentence"),
    tiny={"encoder_hidden": 48, "hidden": 64, "symbol_size": 32},
    deviations=(
        "Sizes and recipe are those of the authors' program for summaries (LCSTS), which attends with coverage and by"
        " 1,000 units, not as many as its decoder has.",
        "The first state is a layer of the last state of the encoder's second direction; in the program of both.",
        "The score of a symbol is linear in the state, as in the paper; the program adds the context, the last symbol"
        " and what was copied.",
        "Greedy by default, because dev is decoded after each epoch; the program searches with a beam of 30.",
        "A place is scored by the state and tanh of a layer of the source's state, as in the paper; the program has"
        " tanh of a layer of state, context, last symbol and what was copied, times the source's state.",
        "What is read of a copied place is the source's state; in the program tanh of a layer of it, as wide as a"
        " symbol's vector.",
        "Weights start as PyTorch's layers do; in the program as Glorot's.",
        "PyTorch's GRU resets the state behind the recurrent matrix, and has two biases; the program's in front of it.",
    ),
)
class CopyNet(CopyingGenerator):
    """A symbol v is worth exp(w_v . s) to be generated, a place j of the source exp(tanh(W h_j) .
    s) to be copied, and ONE sum over all of them makes probabilities; those of equal words add up.

    The GRU decoder reads the last symbol's vector, a context (additive attention of the state
    before, as Bahdanau et al. 2015 have it), and a selective read: the mean of the states h_j where
    the last symbol stands in the source, weighted by the probabilities with which these places have
    just been copied, and zero where it does not stand there. Slow, because of 750 units in each
    direction and in the decoder, which no fused layer steps through.
    """

    def __init__(
        self,
        width: int,
        symbols: int,
        encoder_hidden: int = 750,
        hidden: int = 750,
        symbol_size: int = 500,
        beam: int = 1,
    ):
        super().__init__()
        self.beam, self.symbols = beam, symbols
        self.encoder = Recurrent("gru", width, encoder_hidden, bidirectional=True)
        size = self.encoder.size
        self.bridge = nn.Linear(encoder_hidden, hidden)
        self.vectors_of_symbols = nn.Embedding(symbols, symbol_size)
        self.decoder = nn.GRUCell(symbol_size + 2 * size, hidden)
        self.query = nn.Linear(hidden, hidden)
        self.key = nn.Linear(size, hidden, bias=False)
        self.score = nn.Linear(hidden, 1, bias=False)
        self.output = nn.Linear(hidden, symbols, bias=False)
        self.copy = nn.Linear(size, hidden, bias=False)

    def start(self, vectors: Tensor, mask: Tensor, source: Tensor) -> DecoderState:
        states = self.encoder(vectors, mask)
        first_backward = states[:, 0, self.encoder.size // 2 :]
        memory = Memory(states, self.key(states), torch.tanh(self.copy(states)), mask, source)
        return DecoderState(torch.tanh(self.bridge(first_backward)), torch.zeros_like(states[:, :, 0]), memory)

    def attend(self, hidden: Tensor, memory: Memory) -> Tensor:
        """Context (B, E): the source's states under the attention of a state (B, hidden)."""
        scores = self.score(torch.tanh(self.query(hidden)[:, None] + memory.keys)).squeeze(-1)
        return (masked_softmax(scores, memory.mask)[:, None] @ memory.states).squeeze(1)

    def selective_read(self, symbols: Tensor, state: DecoderState) -> Tensor:
        """Mean (B, E) of the source's states at the places of the symbols (B,), by how probably
        each has been copied."""
        copied = state.copied * (state.memory.numbers == symbols[:, None])
        shares = copied / copied.sum(1, keepdim=True).clamp_min(LEAST)
        return (shares[:, None] @ state.memory.states).squeeze(1)

    def advance(self, symbols: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """Log-probabilities (B, symbols + S) after one more symbol (B,), and the state that has
        read it."""
        memory = state.memory
        symbol = self.vectors_of_symbols(as_symbols(symbols, self.symbols))
        read = torch.cat([symbol, self.selective_read(symbols, state), self.attend(state.hidden, memory)], dim=1)
        hidden = self.decoder(read, state.hidden)
        copying = (memory.copy_keys @ hidden[:, :, None]).squeeze(2).masked_fill(~memory.mask, -torch.inf)
        shares = torch.cat([self.output(hidden), copying], dim=1).softmax(-1)
        generated, copied = shares[:, : self.symbols], shares[:, self.symbols :]
        return joined(generated, copied, memory.numbers), DecoderState(hidden, copied, memory)

    def forward(self, vectors: Tensor, mask: Tensor, source: Tensor, prefix: Tensor) -> Tensor:
        state, scores = self.start(vectors, mask, source), []
        for symbols in prefix.unbind(1):
            step, state = self.advance(symbols, state)
            scores.append(step)
        return torch.stack(scores, dim=1)

    def step(self, symbols: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        return self.advance(symbols, state)
