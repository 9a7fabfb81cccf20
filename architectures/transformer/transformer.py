"""Transformer encoder with layer norm after each residual sum."""

from __future__ import annotations

import math

import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.positions import sinusoids
from harness.kinds import SequenceEncoder
from harness.registry import Recipe, register


class SelfAttention(nn.Module):
    """softmax(Q K^T / sqrt(d_k)) V in each head, heads joined and mapped back: (B, T, size) -> (B,
    T, size).

    No position looks at padding; a text without any other gets zeros.
    """

    def __init__(self, size: int, heads: int, dropout: float):
        super().__init__()
        if size % heads:
            raise ValueError(f"transformer: size={size} cannot be divided among heads={heads}")
        self.heads, self.dropout = heads, dropout
        self.queries_keys_values = nn.Linear(size, 3 * size)
        self.output = nn.Linear(size, size)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        batch, length, size = states.shape
        split = self.queries_keys_values(states).view(batch, length, 3, self.heads, size // self.heads)
        queries, keys, values = split.permute(2, 0, 3, 1, 4)
        dropout = self.dropout if self.training else 0.0
        heads = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask[:, None, None], dropout_p=dropout)
        return self.output(heads.transpose(1, 2).reshape(batch, length, size))


class TransformerLayer(nn.Module):
    """LayerNorm(x + Sublayer(x)) for self-attention and then for a feed-forward network with ReLU
    at each position."""

    def __init__(self, size: int, heads: int, inner: int, dropout: float):
        super().__init__()
        self.attention = SelfAttention(size, heads, dropout)
        self.feedforward = nn.Sequential(nn.Linear(size, inner), nn.ReLU(), nn.Linear(inner, size))
        self.norms = nn.ModuleList(nn.LayerNorm(size) for _ in range(2))
        self.dropout = nn.Dropout(dropout)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        states = self.norms[0](states + self.dropout(self.attention(states, mask)))
        return self.norms[1](states + self.dropout(self.feedforward(states)))


@register(
    "transformer",
    name="Transformer encoder",
    kind="seq",
    paper="Vaswani et al. 2017",
    source="M2.10[5] R25.4",
    year=2017,
    recipe=Recipe(optimizer="adam", lr=0.0014, lr_schedule="warmup_inverse_sqrt", warmup_steps=4000, vector_dims=128),
    tiny={"size": 24, "heads": 2, "inner": 48},
    deviations=(
        (
            "128 wide with 4 heads and 2 layers, not the base model's 512, 8 and 6: it is trained from scratch on a few"
            " thousand sentences."
        ),
        "Adam's second beta is 0.999, not 0.98.",
    ),
)
class TransformerEncoder(SequenceEncoder):
    """Sinusoidal positions added to the scaled input, then layers of multi-head self-attention and
    feed-forward networks.

    Vectors of another width than ``size`` are mapped to it first. A text's vector is the mean of
    its states.
    """

    pooling = "mean"

    def __init__(
        self, width: int, size: int = 128, heads: int = 4, layers: int = 2, inner: int = 512, dropout: float = 0.1
    ):
        super().__init__()
        self.projection = nn.Identity() if width == size else nn.Linear(width, size)
        self.layers = nn.ModuleList(TransformerLayer(size, heads, inner, dropout) for _ in range(layers))
        self.dropout = nn.Dropout(dropout)
        self.size = size

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        states = self.projection(vectors) * math.sqrt(self.size)
        states = self.dropout(states + sinusoids(states.shape[1], self.size, states))
        for layer in self.layers:
            states = layer(states, mask)
        return states
