"""Attention of one sequence over another."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def masked_softmax(scores: Tensor, mask: Tensor, dim: int = -1) -> Tensor:
    """Softmax over the positions where ``mask`` is true, zero elsewhere; a row without any gives
    zeros, not a uniform mean."""
    weights = torch.softmax(scores.masked_fill(~mask, torch.finfo(scores.dtype).min), dim)
    return weights * mask


class AdditiveAttention(nn.Module):
    """Scores v . tanh(W1 query + W2 key + b) (Bahdanau et al. 2015); returns the mean of the keys
    under their softmax.

    Queries (B, T, q), keys (B, U, k), mask of keys (B, U) -> attended keys (B, T, k).
    """

    def __init__(self, query_size: int, key_size: int, hidden: int):
        super().__init__()
        self.query = nn.Linear(query_size, hidden)
        self.key = nn.Linear(key_size, hidden, bias=False)
        self.score = nn.Linear(hidden, 1, bias=False)

    def weights(self, queries: Tensor, keys: Tensor, mask: Tensor) -> Tensor:
        """Attention of each query over the keys: (B, T, U), rows summing to one over the real
        keys."""
        joint = torch.tanh(self.query(queries)[:, :, None] + self.key(keys)[:, None])
        return masked_softmax(self.score(joint).squeeze(-1), mask[:, None])

    def forward(self, queries: Tensor, keys: Tensor, mask: Tensor) -> Tensor:
        return self.weights(queries, keys, mask) @ keys
