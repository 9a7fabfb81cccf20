"""One vector out of the states of several layers."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class LayerMix(nn.Module):
    """gamma * sum of softmax(s)_j h_j over the layers j: (..., size) each, and so the result. It
    begins as their mean (Peters et al. 2018, equation 1)."""

    def __init__(self, layers: int):
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(layers))
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, layers: Sequence[Tensor]) -> Tensor:
        return self.scale * torch.einsum("l,l...->...", self.weights.softmax(0), torch.stack([*layers]))
