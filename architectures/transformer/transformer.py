"""Transformer encoder with layer norm after each residual sum."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor, nn

from architectures.blocks.positions import sinusoids
from architectures.blocks.transformer import Attention, Transformer
from harness.kinds import SequenceEncoder
from harness.registry import Recipe, register


def undropped(size: int, heads: int, _dropout: float, **options: Any) -> Attention:
    """Attention whose weights are never dropped."""
    return Attention(size, heads, **options)


@register(
    "transformer",
    name="Transformer encoder",
    kind="seq",
    paper="Vaswani et al. 2017",
    source="M2.10[5] R25.4",
    year=2017,
    recipe=Recipe(
        optimizer="adam",
        lr=0.0014,
        betas=(0.9, 0.98),
        eps=1e-9,
        lr_schedule="warmup_inverse_sqrt",
        warmup_share=0.04,
        vector_dims=128,
    ),
    tiny={"size": 24, "heads": 2, "inner": 48},
    version=2,
    deviations=(
        (
            "128 wide with 4 heads and 2 layers, not the base model's 512, 8 and 6: it is trained from scratch on a few"
            " thousand sentences."
        ),
        (
            "The warm-up is 4% of the steps, the paper's share: its 4,000 steps would be more than all of ours. The"
            " highest rate is that of its formula for 4,000 steps at a width of 128."
        ),
        "Labels are not smoothed, and a batch has 64 texts; the paper gives a tenth of the probability to other"
        " symbols, and has 25,000 pieces of each language in a batch.",
        "A text's vector is the mean of its states; the paper translates and has no such vector.",
    ),
)
class TransformerEncoder(SequenceEncoder):
    """Sinusoidal positions added to the scaled input, then layers of multi-head self-attention and
    feed-forward networks.

    Vectors of another width than ``size`` are mapped to it first. A text's vector is the mean of
    its states. Dropout acts on the sums of vectors and positions and on what each sublayer adds,
    as in the paper; not on attention weights, which later code drops too.
    """

    pooling = "mean"

    def __init__(
        self, width: int, size: int = 128, heads: int = 4, layers: int = 2, inner: int = 512, dropout: float = 0.1
    ):
        super().__init__()
        self.projection = nn.Identity() if width == size else nn.Linear(width, size)
        self.body = Transformer(size, heads, inner, layers, dropout, attention=undropped, joint=True)
        self.dropout = nn.Dropout(dropout)
        self.size = size

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        states = self.projection(vectors) * math.sqrt(self.size)
        return self.body(self.dropout(states + sinusoids(states.shape[1], self.size, states)), mask)
