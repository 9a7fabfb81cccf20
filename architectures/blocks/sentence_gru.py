"""Gated recurrent networks that read a sentence, and that tell one by the vector of another."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.blocks.contextual_words import KeptStill
from harness.layers.pooling import pool
from harness.views.subwords import SubwordBatch

SPREAD = 0.1
"""Vectors of words begin uniform in +- this (Kiros et al. 2015, section 3.1)."""


class SentenceReader(KeptStill):
    """Words (B, T) of texts to the last state (B, hidden) of a GRU that reads them.

    Vectors of words begin uniform in +- :data:`SPREAD`.
    """

    def __init__(self, width: int, embedded: int, hidden: int):
        super().__init__()
        self.table = nn.Embedding(width, embedded)
        nn.init.uniform_(self.table.weight, -SPREAD, SPREAD)
        self.recurrence = nn.GRU(embedded, hidden, batch_first=True)

    def forward(self, pieces: SubwordBatch) -> Tensor:
        return pool(self.recurrence(self.table(pieces.ids))[0], pieces.mask, "last")


class ConditionedGRU(nn.Module):
    """A GRU whose gates and candidate state are given a context, as wide as the state, at each step
    beside the vector of a word: W x + C c + U h, in each of the three (Kiros et al. 2015, equations
    5 to 8)."""

    def __init__(self, width: int, hidden: int):
        super().__init__()
        self.recurrence = nn.GRU(width + hidden, hidden, batch_first=True)

    def forward(self, vectors: Tensor, context: Tensor, first: Tensor | None = None) -> Tensor:
        """States (B, T, hidden) behind vectors (B, T, width), by a context (B, hidden) and a
        ``first`` state (B, hidden), by default 0."""
        seen = context[:, None].expand(-1, vectors.shape[1], -1)
        return self.recurrence(torch.cat([vectors, seen], 2), None if first is None else first[None])[0]
