"""Transformer layers that know how far apart two places are, and nothing else of where they stand
(Raffel et al. 2020: 2.1)."""

from __future__ import annotations

import math
from functools import partial

import torch
from torch import Tensor, nn

from architectures.blocks.transformer import Attention, TransformerLayer

BUCKETS, FAR = 32, 128
"""Buckets of distances, and the distance from which on all stand in one."""


def buckets(distances: Tensor, both_ways: bool) -> Tensor:
    """The bucket of each distance j - i from place i to place j.

    Half of the buckets have one distance each, the others ranges that grow with the logarithm up to
    :data:`FAR`. In ``both_ways`` places behind i have half of all buckets to themselves; else they
    count as i itself, since nobody looks there.
    """
    if both_ways:
        half = BUCKETS // 2
        return half * (distances > 0) + _ranges(distances.abs(), half)
    return _ranges((-distances).clamp(min=0), BUCKETS)


def _ranges(distances: Tensor, count: int) -> Tensor:
    """The range, of so many, of distances from 0 on."""
    exact = count // 2
    growth = (distances.clamp(min=1) / exact).log() / math.log(FAR / exact)
    wide = exact + (growth * (count - exact)).long()
    return torch.where(distances < exact, distances, wide.clamp(max=count - 1))


class RelativeStack(nn.Module):
    """A stack of ``layers``: vectors (B, U, size) -> states (B, U, size).

    A number for each bucket of distances and each head is added to the scores of self-attention,
    Q K^T / sqrt(d); all layers share them. Norms stand before sublayers and behind the stack; they
    divide by the root mean square, without mean and biases. Matrices have no biases, either. With
    ``cross`` each layer also attends to the states of a source, whose distance is unknown, and
    places look back alone.
    """

    def __init__(self, size: int, heads: int, inner: int, layers: int, dropout: float, eps: float, cross: bool = False):
        super().__init__()
        self.both_ways = not cross
        self.distances = nn.Embedding(BUCKETS, heads)
        self.layers = nn.ModuleList(
            TransformerLayer(
                size,
                heads,
                inner,
                dropout,
                cross,
                pre_norm=True,
                inner_dropout=dropout,
                eps=eps,
                attention=partial(Attention, bias=False),
                norm=nn.RMSNorm,
                bias=False,
            )
            for _ in range(layers)
        )
        self.norm = nn.RMSNorm(size, eps)
        self.dropout = nn.Dropout(dropout)
        self.begin(size, inner)

    def begin(self, size: int, inner: int) -> None:
        """Draw the weights at random, normal, so that sums of as many as enter have deviation 1,
        and scores too."""
        nn.init.normal_(self.distances.weight, std=size**-0.5)
        for layer in self.layers:
            for attention in filter(None, (layer.attention, layer.across)):
                for matrix in (attention.query, attention.key, attention.value, attention.output):
                    nn.init.normal_(matrix.weight, std=size**-0.5)
            nn.init.normal_(layer.feedforward[0].weight, std=size**-0.5)
            nn.init.normal_(layer.feedforward[-1].weight, std=inner**-0.5)

    def forward(
        self, vectors: Tensor, seen: Tensor, source: Tensor | None = None, source_mask: Tensor | None = None
    ) -> Tensor:
        """``seen`` (B or 1, U or 1, U) is true where the first place may look at the second, and
        ``source_mask`` (B, S) at the real places of a source (B, S, size)."""
        places = torch.arange(vectors.shape[1], device=vectors.device)
        bias = self.distances(buckets(places - places[:, None], self.both_ways)).permute(2, 0, 1)
        allowed = bias.masked_fill(~seen[:, None], -torch.inf)
        across = None if source_mask is None else source_mask[:, None, None]
        states = self.dropout(vectors)
        for layer in self.layers:
            memory = None if source is None else layer.across.remember(source)
            states, _ = layer(states, allowed, source=memory, source_mask=across)
        return self.dropout(self.norm(states))
