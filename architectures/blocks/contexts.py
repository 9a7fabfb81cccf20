"""Recurrences over what stands beside each word."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Context(nn.Module):
    """c(w_1) learned, c(w_i) = tanh(W c(w_{i-1}) + W_s e(w_{i-1})): what stands before each word,
    (B, T, width) -> (B, T, size)."""

    def __init__(self, width: int, size: int):
        super().__init__()
        self.start = nn.Parameter(torch.empty(size).uniform_(-0.25, 0.25))
        self.recurrence = nn.RNN(width, size, batch_first=True, bias=False)

    def forward(self, vectors: Tensor) -> Tensor:
        start = self.start.expand(1, len(vectors), -1).contiguous()
        # The recurrence's state at i has read word i, so it is the context of word i + 1.
        after = self.recurrence(vectors, start)[0]
        return torch.cat([start.transpose(0, 1), after[:, :-1]], dim=1)
