"""A transformer whose attention knows how far apart two places are, with a second stream of states
that know their place and not what stands there (Dai et al. 2019; Yang et al. 2019)."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.transformer import Attention, Memory, TransformerLayer
from harness.layers.attention import masked_softmax


def distance_vectors(length: int, like: Tensor) -> Tensor:
    """Vectors (2 length - 1, size) of the distances length - 1 down to 1 - length: their sines and
    then their cosines, of the wavelengths of Vaswani et al. 2017. Of the device, type and size of
    ``like``."""
    distances = torch.arange(length - 1, -length, -1, device=like.device, dtype=like.dtype)
    size = like.shape[-1]
    rates = 10000 ** -(torch.arange(0, size, 2, device=like.device, dtype=like.dtype) / size)
    angles = distances[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], -1)


class Sight(NamedTuple):
    """Knowledge that U places of B texts have of all T places, beside the states there.

    ``distances`` (2T - 1, size) are vectors of distances, ``far`` (B or 1, U, T) the row of the
    distance from the one place to the other; ``other`` (B, U, T) is 1 where the two are of
    different segments, else 0, and ``allowed`` (B, U, T) true where the one may look at the other.
    """

    distances: Tensor
    far: Tensor
    other: Tensor
    allowed: Tensor

    @classmethod
    def of(cls, distances: Tensor, segments: Tensor, allowed: Tensor) -> Sight:
        """That of all places of texts with ``segments`` (B, T)."""
        places = torch.arange(segments.shape[1], device=segments.device)
        far = len(places) - 1 - (places[:, None] - places)
        return cls(distances, far[None], (segments[:, :, None] != segments[:, None]).long(), allowed)

    def at(self, places: Tensor, allowed: Tensor) -> Sight:
        """That of some ``places`` (B, U), which may look where ``allowed`` (B, T, T) says."""
        rows = places[:, :, None].expand(-1, -1, self.other.shape[2])
        far = self.far.expand(len(places), -1, -1)
        return Sight(self.distances, far.gather(1, rows), self.other.gather(1, rows), allowed.gather(1, rows))


class DistantAttention(Attention):
    """Attention of place i to j by ((q_i + u) . k_j + (q_i + v) . W r_(i-j) + (q_i + s) . t_ij) /
    sqrt(d).

    r are vectors of distances, and t_ij is one of two vectors, for places of one segment and of
    two; u, v, s and t are of each head.
    """

    def __init__(self, size: int, heads: int, dropout: float):
        super().__init__(size, heads, dropout, bias=False)
        self.distance = nn.Linear(size, size, bias=False)
        self.bias_content, self.bias_distance, self.bias_segment = (
            nn.Parameter(torch.zeros(heads, size // heads)) for _ in range(3)
        )
        self.segments = nn.Parameter(torch.zeros(2, heads, size // heads))

    def vectors(self) -> list[nn.Parameter]:
        """Its parameters beside matrices."""
        return [self.bias_content, self.bias_distance, self.bias_segment, self.segments]

    def look(self, states: Tensor, memory: Memory, sight: Sight) -> Tensor:
        """The numbers (B, U, size) that states (B, U, size) read from the memory of T places."""
        queries = self.split(self.query(states))  # (B, heads, U, d)

        def scores(bias: Tensor, keys: Tensor) -> Tensor:
            return (queries + bias[:, None]) @ keys.mT

        def chosen(scores: Tensor, rows: Tensor) -> Tensor:
            return scores.gather(-1, rows[:, None].expand(len(scores), self.heads, -1, -1))

        content = scores(self.bias_content, memory.keys)
        distance = chosen(scores(self.bias_distance, self.split(self.distance(sight.distances)[None])), sight.far)
        segment = chosen(scores(self.bias_segment, self.segments.transpose(0, 1)), sight.other)
        total = (content + distance + segment) / math.sqrt(queries.shape[-1])
        weights = masked_softmax(total, sight.allowed[:, None])
        return self.join(F.dropout(weights, self.dropout, self.training) @ memory.values)


class TwoStreams(nn.Module):
    """A stack of ``layers``: states (B, T, size) -> (B, T, size), and with them, where there are
    any, queries (B, U, size) -> (B, U, size) of some of their places. Both pass the same weights,
    and both look at the states alone."""

    def __init__(self, size: int, heads: int, inner: int, layers: int, dropout: float, eps: float):
        super().__init__()
        self.layers = nn.ModuleList(
            TransformerLayer(
                size,
                heads,
                inner,
                dropout,
                activation=nn.GELU,
                inner_dropout=dropout,
                eps=eps,
                attention=DistantAttention,
            )
            for _ in range(layers)
        )

    def forward(
        self, states: Tensor, sight: Sight, queries: Tensor | None = None, theirs: Sight | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """States and queries after all layers; ``theirs`` is what the places of the queries
        know."""
        for layer in self.layers:
            memory = layer.attention.remember(states)
            if queries is not None and theirs is not None:
                queries = self.passed(layer, queries, memory, theirs)
            states = self.passed(layer, states, memory, sight)
        return states, queries

    @staticmethod
    def passed(layer: TransformerLayer, states: Tensor, memory: Memory, sight: Sight) -> Tensor:
        """States (B, U, size) of one stream after a layer."""
        states = layer.add(0, states, layer.attention.look(states, memory, sight))
        return layer.add(1, states, layer.feedforward(states))
