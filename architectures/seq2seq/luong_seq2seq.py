"""Encoder-decoder whose decoder attends over the source after each step, with input feeding."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from architectures.blocks.packed_lstm import PackedLSTM
from architectures.blocks.recurrent import reverse
from harness.kinds import Generator
from harness.layers.attention import masked_softmax
from harness.registry import Recipe, register


class DecoderState(NamedTuple):
    """States and cells (B, layers, hidden), the last attentional state (B, hidden), the source's
    states (B, S, hidden) and mask (B, S)."""

    hidden: Tensor
    cell: Tensor
    attentional: Tensor
    memory: Tensor
    mask: Tensor


@register(
    "attn_seq2seq_luong",
    name="Attentional encoder-decoder, current state",
    kind="generate",
    paper="Luong et al. 2015",
    source="Z16.1.2 R25.3.1",
    year=2015,
    version=3,
    recipe=Recipe(
        optimizer="sgd",
        lr=1.0,
        batch_size=128,
        epochs=12,
        clip=5.0,
        lr_schedule="step",
        step_start=8.0,
        reduction="sentence",
        vector_dims=1000,
    ),
    tiny={"hidden": 64, "layers": 1, "symbol_size": 32, "limit": 0.2},
    deviations=(
        "The source's vectors start as the harness makes them, within +-0.25.",
        "Attention is global; the paper's window around a predicted position is not built.",
        "The length of the whole gradient is at most 5; in the authors' program word vectors are not counted in it.",
        "Greedy by default, because dev is decoded after each epoch; the paper searches with a beam.",
    ),
)
class LuongSeq2Seq(Generator):
    """Stacked LSTMs; the decoder's top state h_i is computed first and attends then, so that its
    context comes after the recurrence.

    Scores of source state s_j are h_i . s_j (``dot``), h_i . W s_j (``general``) or v . tanh(W
    [h_i; s_j]) (``concat``). The attentional state tanh(W [context; h_i]) scores the symbols
    and is fed into the next step beside the symbol's vector (input feeding). The decoder begins
    from the last states and cells of the encoder, layer by layer; the encoder reads the source
    backwards. Dropout acts on what each layer reads, what is fed back among it. No layer has a
    bias. All weights but the source's vectors start uniform within +- ``limit``. Slow, because of
    its size: 67 million weights.
    """

    both_ways: ClassVar[bool] = False
    """True where the encoder reads the source in both directions, each by half of the numbers."""
    bias: ClassVar[bool] = False
    """True where gates and the scores of symbols have biases."""

    def __init__(
        self,
        width: int,
        symbols: int,
        hidden: int = 1000,
        layers: int = 4,
        symbol_size: int = 1000,
        attention: str = "general",
        dropout: float = 0.2,
        limit: float = 0.1,
        beam: int = 1,
    ):
        super().__init__()
        if attention not in ("dot", "general", "concat"):
            raise ValueError(f"attention={attention!r} is none of 'dot', 'general', 'concat'")
        self.beam, self.attention = beam, attention
        if self.both_ways and hidden % 2:
            raise ValueError(f"hidden={hidden} is odd: each direction has half of the numbers")
        half = hidden // 2 if self.both_ways else hidden
        self.encoder = PackedLSTM(width, half, layers, self.both_ways, dropout, self.bias)
        between = dropout if layers > 1 else 0.0
        self.decoder = nn.LSTM(symbol_size + hidden, hidden, layers, self.bias, batch_first=True, dropout=between)
        self.dropout = nn.Dropout(dropout)
        self.vectors_of_symbols = nn.Embedding(symbols, symbol_size)
        if attention == "general":
            self.key = nn.Linear(hidden, hidden, bias=False)
        elif attention == "concat":
            self.joint = nn.Linear(2 * hidden, hidden, bias=False)
            self.score = nn.Linear(hidden, 1, bias=False)
        self.combine = nn.Linear(2 * hidden, hidden, bias=False)
        self.output = nn.Linear(hidden, symbols, self.bias)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -limit, limit)

    def start(self, vectors: Tensor, mask: Tensor) -> DecoderState:
        source = vectors if self.both_ways else reverse(vectors, mask)
        memory, hidden, cell = self.encoder(self.dropout(source), mask)
        nothing_yet = torch.zeros_like(hidden[:, -1])
        return DecoderState(hidden, cell, nothing_yet, memory, mask)

    def attend(self, hidden: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
        """Attention (B, S) of the decoder's top state (B, hidden) over the source."""
        if self.attention == "concat":
            pairs = torch.cat([hidden[:, None].expand_as(memory), memory], dim=-1)
            scores = self.score(torch.tanh(self.joint(pairs))).squeeze(-1)
        else:
            # h . W s = (W^T h) . s, which is one product per step and not one per source position.
            query = hidden @ self.key.weight if self.attention == "general" else hidden
            scores = (memory @ query[:, :, None]).squeeze(-1)
        return masked_softmax(scores, mask)

    def advance(self, symbol: Tensor, state: DecoderState) -> DecoderState:
        """The state after reading the vectors (B, symbol_size) of one more symbol."""
        fed = self.dropout(torch.cat([symbol, state.attentional], dim=1))
        before = state.hidden.transpose(0, 1).contiguous(), state.cell.transpose(0, 1).contiguous()
        top, (hidden, cell) = self.decoder(fed[:, None], before)
        top = top.squeeze(1)
        context = (self.attend(top, state.memory, state.mask)[:, None] @ state.memory).squeeze(1)
        attentional = torch.tanh(self.combine(torch.cat([context, top], dim=1)))
        return DecoderState(hidden.transpose(0, 1), cell.transpose(0, 1), attentional, state.memory, state.mask)

    def forward(self, vectors: Tensor, mask: Tensor, prefix: Tensor) -> Tensor:
        state, attentional = self.start(vectors, mask), []
        for symbol in self.vectors_of_symbols(prefix).unbind(1):
            state = self.advance(symbol, state)
            attentional.append(state.attentional)
        return self.output(torch.stack(attentional, dim=1))

    def step(self, symbols: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        state = self.advance(self.vectors_of_symbols(symbols), state)
        return self.output(state.attentional).log_softmax(-1), state
