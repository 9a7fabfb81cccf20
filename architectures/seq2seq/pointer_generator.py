"""Encoder-decoder whose attention over the source is also a distribution over words to copy."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from architectures.blocks.copying import as_symbols, joined
from architectures.blocks.packed_lstm import PackedLSTM
from harness.kinds import CopyingGenerator
from harness.layers.attention import masked_softmax
from harness.registry import Recipe, register


class Memory(NamedTuple):
    """The encoded source: ``states`` (B, S, E), their ``keys`` (B, S, E) for attention, ``mask``
    and the words' ``numbers`` (B, S) in the extended vocabulary."""

    states: Tensor
    keys: Tensor
    mask: Tensor
    numbers: Tensor


class DecoderState(NamedTuple):
    """State and cell (B, hidden) of the decoder, its last context (B, E), the attention (B, S) that
    the source has had so far, and the source."""

    hidden: Tensor
    cell: Tensor
    context: Tensor
    coverage: Tensor
    memory: Memory


class Written(NamedTuple):
    """One step: log-probabilities (B, symbols + S), and for each row (B,) the attention that goes
    where attention has been."""

    scores: Tensor
    repeated: Tensor


@register(
    "pointer_generator",
    name="Pointer-generator network",
    kind="generate",
    paper="Vinyals et al. 2015; See et al. 2017",
    source="Z16.1.3",
    year=2017,
    version=2,
    recipe=Recipe(optimizer="adagrad", lr=0.15, first_sum=0.1, batch_size=16, epochs=20, clip=2.0, vector_dims=128),
    tiny={"encoder_hidden": 48, "hidden": 64, "symbol_size": 32},
    deviations=(
        "Weights start as PyTorch's layers do; in the authors' program those of LSTMs within +-0.02, with 1 added to"
        " what a forget gate reads, and vectors, first state and output normal with a deviation of 0.0001.",
        "Source and target have vectors of their own, since they are two languages; the paper's share one table.",
        (
            "No coverage by default: the paper adds it for the last 3,000 of 233,000 steps, for long summaries that"
            " repeat themselves. With coverage=1.0 it is there from the first step on."
        ),
        "The loss is a mean over all symbols of a batch; theirs is the mean over its texts' means.",
        "Greedy by default, because dev is decoded after each epoch; the paper searches with a beam of 4.",
    ),
)
class PointerGenerator(CopyingGenerator):
    """At each step the decoder's state attends over the source; with probability ``generate`` the
    next word is one of the vocabulary, otherwise it is copied from where the attention lies.

    a = softmax over i of v . tanh(W h_i + U [s; cell] + w c_i + b) and the context is its mean of
    the source's states h_i; P(word) = p P_vocabulary(word) + (1 - p) times the sum of a_i over the
    places i where the source has the word; p = sigmoid of a linear layer over context, s, cell and
    the decoder's input. That input is a linear layer over the last symbol's vector and the last
    context. The decoder's first state and cell are ReLU layers of the encoder's last ones in both
    directions. With ``coverage`` above 0 the sum c of all earlier attention enters the scores, and
    ``coverage`` times the sum over i of min(a_i, c_i), the mean over all steps, is added to the
    loss. As in the authors' code where the paper leaves it open.
    """

    def __init__(
        self,
        width: int,
        symbols: int,
        encoder_hidden: int = 256,
        hidden: int = 256,
        symbol_size: int = 128,
        coverage: float = 0.0,
        beam: int = 1,
    ):
        super().__init__()
        self.beam, self.symbols, self.coverage = beam, symbols, coverage
        self.encoder = PackedLSTM(width, encoder_hidden, bidirectional=True)
        size = self.encoder.size
        self.first_hidden, self.first_cell = nn.Linear(size, hidden), nn.Linear(size, hidden)
        self.vectors_of_symbols = nn.Embedding(symbols, symbol_size)
        self.input = nn.Linear(symbol_size + size, symbol_size)
        self.decoder = nn.LSTMCell(symbol_size, hidden)
        self.query = nn.Linear(2 * hidden, size)
        self.key = nn.Linear(size, size, bias=False)
        self.score = nn.Linear(size, 1, bias=False)
        if coverage:
            self.covered = nn.Linear(1, size, bias=False)
        self.generate = nn.Linear(size + 2 * hidden + symbol_size, 1)
        self.combine = nn.Linear(hidden + size, hidden)
        self.output = nn.Linear(hidden, symbols)

    def start(self, vectors: Tensor, mask: Tensor, source: Tensor) -> DecoderState:
        states, hidden, cell = self.encoder(vectors, mask)
        return DecoderState(
            self.first_hidden(hidden[:, 0]).relu(),
            self.first_cell(cell[:, 0]).relu(),
            torch.zeros_like(states[:, 0]),
            torch.zeros_like(mask, dtype=states.dtype),
            Memory(states, self.key(states), mask, source),
        )

    def attend(self, state: DecoderState) -> Tensor:
        """Attention (B, S) of the decoder's state over the source."""
        joint = self.query(torch.cat([state.hidden, state.cell], dim=1))[:, None] + state.memory.keys
        if self.coverage:
            joint = joint + self.covered(state.coverage[:, :, None])
        return masked_softmax(self.score(torch.tanh(joint)).squeeze(-1), state.memory.mask)

    def advance(self, symbols: Tensor, state: DecoderState) -> tuple[Written, DecoderState]:
        """The step after one more symbol (B,), and the state that has read it."""
        symbol = self.vectors_of_symbols(as_symbols(symbols, self.symbols))
        read = self.input(torch.cat([symbol, state.context], dim=1))
        hidden, cell = self.decoder(read, (state.hidden, state.cell))
        state = state._replace(hidden=hidden, cell=cell)
        attention = self.attend(state)
        context = (attention[:, None] @ state.memory.states).squeeze(1)
        generate = torch.sigmoid(self.generate(torch.cat([context, hidden, cell, read], dim=1)))
        vocabulary = self.output(self.combine(torch.cat([hidden, context], dim=1))).softmax(-1)
        scores = joined(generate * vocabulary, (1 - generate) * attention, state.memory.numbers)
        written = Written(scores, torch.minimum(attention, state.coverage).sum(1))
        return written, state._replace(context=context, coverage=state.coverage + attention)

    def forward(self, vectors: Tensor, mask: Tensor, source: Tensor, prefix: Tensor) -> Tensor:
        state, steps = self.start(vectors, mask, source), []
        for symbols in prefix.unbind(1):
            written, state = self.advance(symbols, state)
            steps.append(written)
        if self.coverage:
            repeated = torch.stack([step.repeated for step in steps], dim=1)
            self.add_loss("coverage", self.coverage * repeated[prefix != 0].mean())
        return torch.stack([step.scores for step in steps], dim=1)

    def step(self, symbols: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        written, state = self.advance(symbols, state)
        return written.scores, state
