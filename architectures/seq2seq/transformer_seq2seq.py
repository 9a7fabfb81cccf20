"""Transformer: encoder and decoder of attention and feed-forward layers, without recurrence."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.positions import sinusoids
from harness.kinds import Generator
from harness.registry import Recipe, register


class Memory(NamedTuple):
    """What can be attended to: ``keys`` and ``values`` (B, heads, positions, size / heads)."""

    keys: Tensor
    values: Tensor


class DecoderState(NamedTuple):
    """For each decoder layer, its memory of the symbols read so far and of the source; ``mask`` (B,
    1, 1, S) is the source's."""

    written: tuple[Memory, ...]
    source: tuple[Memory, ...]
    mask: Tensor


class MultiHeadAttention(nn.Module):
    """softmax(Q K^T / sqrt(d_k)) V in each head, heads joined and mapped back: states (B, U, size)
    -> (B, U, size)."""

    def __init__(self, size: int, heads: int, dropout: float):
        super().__init__()
        if size % heads:
            raise ValueError(f"transformer_seq2seq: size={size} cannot be divided among heads={heads}")
        self.heads, self.dropout = heads, dropout
        self.query, self.key, self.value, self.output = (nn.Linear(size, size) for _ in range(4))

    def split(self, states: Tensor) -> Tensor:
        """(B, U, size) as (B, heads, U, size / heads)."""
        return states.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def remember(self, states: Tensor) -> Memory:
        """The keys and values of states (B, S, size)."""
        return Memory(self.split(self.key(states)), self.split(self.value(states)))

    def forward(self, states: Tensor, memory: Memory, allowed: Tensor) -> Tensor:
        """``allowed`` (B or 1, 1, U or 1, S) is true where a state may look."""
        dropout = self.dropout if self.training else 0.0
        heads = F.scaled_dot_product_attention(
            self.split(self.query(states)), *memory, attn_mask=allowed, dropout_p=dropout
        )
        return self.output(heads.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    """LayerNorm(x + Sublayer(x)) of self-attention, in a decoder of attention over the source, and
    of a ReLU network at each position."""

    def __init__(self, size: int, heads: int, inner: int, dropout: float, decoder: bool):
        super().__init__()
        self.attention = MultiHeadAttention(size, heads, dropout)
        self.across = MultiHeadAttention(size, heads, dropout) if decoder else None
        self.feedforward = nn.Sequential(nn.Linear(size, inner), nn.ReLU(), nn.Linear(inner, size))
        self.norms = nn.ModuleList(nn.LayerNorm(size) for _ in range(3 if decoder else 2))
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, states: Tensor, memory: Memory, allowed: Tensor, source: Memory | None = None, mask: Tensor | None = None
    ) -> Tensor:
        states = self.norms[0](states + self.dropout(self.attention(states, memory, allowed)))
        if self.across is not None:
            states = self.norms[1](states + self.dropout(self.across(states, source, mask)))
        return self.norms[-1](states + self.dropout(self.feedforward(states)))


@register(
    "transformer_seq2seq",
    name="Transformer encoder-decoder",
    kind="generate",
    paper="Vaswani et al. 2017",
    source="Z16.1.5 R25.4 M-A.6",
    year=2017,
    recipe=Recipe(optimizer="adam", lr=0.0014, lr_schedule="warmup_inverse_sqrt", warmup_steps=4000, vector_dims=128),
    tiny={"size": 64, "heads": 2, "inner": 64, "layers": 1},
    deviations=(
        (
            "128 wide with 4 heads and 2 + 2 layers, not the base model's 512, 8 and 6 + 6: it is trained from scratch"
            " on a few thousand."
        ),
        "Only the decoder's symbols share their vectors with the output; the source has its own.",
        "No label smoothing; Adam's second beta is 0.999, not 0.98.",
        "Greedy by default, because dev is decoded after each epoch; the paper searches with a beam of 4.",
    ),
)
class TransformerSeq2Seq(Generator):
    """The source's states attend to one another; each target position attends to itself and those
    before it, then to the source.

    Scaled vectors plus sinusoidal positions go in; a symbol's score is the product of the decoder's
    last state with the symbol's vector. Source vectors of another width than ``size`` are mapped to
    it first. Decoding keeps keys and values of what is written, so that a step costs one position.
    """

    def __init__(
        self,
        width: int,
        symbols: int,
        size: int = 128,
        heads: int = 4,
        layers: int = 2,
        inner: int = 512,
        dropout: float = 0.1,
        beam: int = 1,
    ):
        super().__init__()
        self.beam, self.scale = beam, math.sqrt(size)
        self.projection = nn.Identity() if width == size else nn.Linear(width, size)
        self.encoder = nn.ModuleList(Layer(size, heads, inner, dropout, decoder=False) for _ in range(layers))
        self.decoder = nn.ModuleList(Layer(size, heads, inner, dropout, decoder=True) for _ in range(layers))
        self.vectors_of_symbols = nn.Embedding(symbols, size)
        # Scaled up they are as large as the positions, and as output weights they give scores of
        # about 1.
        nn.init.normal_(self.vectors_of_symbols.weight, std=1 / self.scale)
        self.dropout = nn.Dropout(dropout)

    def placed(self, vectors: Tensor, first: int = 0) -> Tensor:
        """Scaled vectors (B, U, size) with their positions, the first of which is ``first``."""
        positions = sinusoids(first + vectors.shape[1], vectors.shape[2], vectors)[first:]
        return self.dropout(vectors * self.scale + positions)

    def start(self, vectors: Tensor, mask: Tensor) -> DecoderState:
        states, mask = self.placed(self.projection(vectors)), mask[:, None, None]
        for layer in self.encoder:
            states = layer(states, layer.attention.remember(states), mask)
        nothing = states[:, :0]
        written = tuple(layer.attention.remember(nothing) for layer in self.decoder)
        return DecoderState(written, tuple(layer.across.remember(states) for layer in self.decoder), mask)

    def read(self, symbols: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """Scores (B, U, symbols) after each of the symbols (B, U), and the state that has them in
        its memory."""
        before, now = state.written[0].keys.shape[2], symbols.shape[1]
        states = self.placed(self.vectors_of_symbols(symbols), before)
        causal = torch.ones(now, before + now, dtype=torch.bool, device=symbols.device).tril(before)[None, None]
        written = []
        for layer, past, source in zip(self.decoder, state.written, state.source, strict=True):
            memory = Memory(
                *(torch.cat(both, dim=2) for both in zip(past, layer.attention.remember(states), strict=True))
            )
            written.append(memory)
            states = layer(states, memory, causal, source, state.mask)
        return states @ self.vectors_of_symbols.weight.T, DecoderState(tuple(written), state.source, state.mask)

    def forward(self, vectors: Tensor, mask: Tensor, prefix: Tensor) -> Tensor:
        return self.read(prefix, self.start(vectors, mask))[0]

    def step(self, symbols: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        scores, state = self.read(symbols[:, None], state)
        return scores.squeeze(1).log_softmax(-1), state
