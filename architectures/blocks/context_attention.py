"""Attention of one learned vector over the positions of a text."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from harness.layers.attention import masked_softmax


class ContextAttention(nn.Module):
    """sum_t a_t h_t with a = softmax_t(tanh(W h_t + b) . u) for a learned context vector u: (N, T,
    size) -> (N, size)."""

    def __init__(self, size: int, context: int):
        super().__init__()
        self.hidden = nn.Linear(size, context)
        self.context = nn.Parameter(torch.randn(context) * 0.1)

    def weights(self, states: Tensor, mask: Tensor) -> Tensor:
        """Attention (N, T), summing to one over the real positions; zeros where there are none."""
        return masked_softmax(torch.tanh(self.hidden(states)) @ self.context, mask)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        return (self.weights(states, mask)[:, None] @ states).squeeze(1)
