"""Encoder-decoder whose decoder attends over the source before each step."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from architectures.blocks.recurrent import Recurrent
from harness.kinds import Generator
from harness.layers.attention import masked_softmax
from harness.registry import Recipe, register


class Memory(NamedTuple):
    """The encoded source: ``states`` (B, S, E), the ``keys`` (B, S, A) that attention compares
    with, ``mask`` (B, S)."""

    states: Tensor
    keys: Tensor
    mask: Tensor


class DecoderState(NamedTuple):
    """State and cell (B, hidden) of the decoder, and the source it attends to."""

    hidden: Tensor
    cell: Tensor
    memory: Memory


@register(
    "attn_seq2seq",
    name="Attentional encoder-decoder, additive",
    kind="generate",
    paper="Bahdanau et al. 2015",
    source="Z16.1.2 R25.3.1 M-A.5",
    year=2015,
    version=3,
    recipe=Recipe(
        optimizer="adadelta",
        lr=1.0,
        rho=0.95,
        eps=1e-6,
        batch_size=80,
        epochs=20,
        clip=1.0,
        reduction="batch",
        vector_dims=620,
    ),
    tiny={"encoder_hidden": 64, "hidden": 64, "symbol_size": 32},
    deviations=(
        (
            "Weights start as PyTorch's layers do; the paper draws small Gaussians, makes the recurrent matrices"
            " orthogonal and sets biases and v to zero."
        ),
        "LSTM cells as in the source text; the paper has gated recurrent units.",
        "Scores are linear in the new state; the paper has a maxout layer over the state before, the context and the"
        " last symbol.",
        "Greedy by default, because dev is decoded after each epoch; the paper searches with a beam.",
    ),
)
@register(
    "attn_seq2seq_dot",
    name="Attentional encoder-decoder, dot product",
    kind="generate",
    paper="Bahdanau et al. 2015, with the scores of Luong et al. 2015",
    source="Z16.1.2",
    year=2015,
    version=3,
    recipe=Recipe(
        optimizer="adadelta",
        lr=1.0,
        rho=0.95,
        eps=1e-6,
        batch_size=80,
        epochs=20,
        clip=1.0,
        reduction="batch",
        vector_dims=620,
    ),
    hyperparameters={"attention": "dot", "encoder_hidden": 500},
    tiny={"encoder_hidden": 64, "hidden": 128, "symbol_size": 32},
    deviations=(
        (
            "The source text gives no sizes: they are those of attn_seq2seq, with the encoder's states as long as the"
            " decoder's."
        ),
        "Greedy by default, because dev is decoded after each epoch.",
    ),
)
class AttentionalSeq2Seq(Generator):
    """BiLSTM encoder; an LSTM decoder that reads the last symbol and a weighted mean of the
    source's states, its context.

    The weights of step i come from the decoder's state before it, h_{i-1}: softmax over j of v .
    tanh(W h_{i-1} + U s_j) (``additive``) or of h_{i-1} . s_j (``dot``). The context stands beside
    the symbol's vector as input, and so enters every gate. The decoder begins from the encoder's
    right-to-left state at the first position.
    """

    def __init__(
        self,
        width: int,
        symbols: int,
        encoder_hidden: int = 1000,
        hidden: int = 1000,
        symbol_size: int = 620,
        attention: str = "additive",
        beam: int = 1,
    ):
        super().__init__()
        if attention not in ("additive", "dot"):
            raise ValueError(f"attention={attention!r} is neither 'additive' nor 'dot'")
        self.encoder = Recurrent("lstm", width, encoder_hidden, bidirectional=True)
        if attention == "dot" and self.encoder.size != hidden:
            raise ValueError(f"attention='dot' needs hidden = 2 * encoder_hidden, found {hidden} and {encoder_hidden}")
        self.beam, self.attention = beam, attention
        self.bridge = nn.Linear(encoder_hidden, hidden)
        self.vectors_of_symbols = nn.Embedding(symbols, symbol_size)
        self.decoder = nn.LSTMCell(symbol_size + self.encoder.size, hidden)
        if attention == "additive":
            self.query = nn.Linear(hidden, hidden, bias=False)
            self.key = nn.Linear(self.encoder.size, hidden, bias=False)
            self.score = nn.Linear(hidden, 1, bias=False)
        self.output = nn.Linear(hidden, symbols)

    def start(self, vectors: Tensor, mask: Tensor) -> DecoderState:
        states = self.encoder(vectors, mask)
        hidden = torch.tanh(self.bridge(states[:, 0, self.encoder.size // 2 :]))
        keys = self.key(states) if self.attention == "additive" else states
        return DecoderState(hidden, torch.zeros_like(hidden), Memory(states, keys, mask))

    def attend(self, hidden: Tensor, memory: Memory) -> Tensor:
        """Attention (B, S) of a decoder state (B, hidden) over the source."""
        if self.attention == "additive":
            scores = self.score(torch.tanh(self.query(hidden)[:, None] + memory.keys)).squeeze(-1)
        else:
            scores = (memory.keys @ hidden[:, :, None]).squeeze(-1)
        return masked_softmax(scores, memory.mask)

    def advance(self, symbol: Tensor, state: DecoderState) -> DecoderState:
        """The state after reading the vectors (B, symbol_size) of one more symbol."""
        weights = self.attend(state.hidden, state.memory)
        context = (weights[:, None] @ state.memory.states).squeeze(1)
        hidden, cell = self.decoder(torch.cat([symbol, context], dim=1), (state.hidden, state.cell))
        return DecoderState(hidden, cell, state.memory)

    def forward(self, vectors: Tensor, mask: Tensor, prefix: Tensor) -> Tensor:
        state, states = self.start(vectors, mask), []
        for symbol in self.vectors_of_symbols(prefix).unbind(1):
            state = self.advance(symbol, state)
            states.append(state.hidden)
        return self.output(torch.stack(states, dim=1))

    def step(self, symbols: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        state = self.advance(self.vectors_of_symbols(symbols), state)
        return self.output(state.hidden).log_softmax(-1), state
