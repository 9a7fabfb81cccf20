"""Strided convolutions over the samples of a recording."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

LAYERS = ((10, 5), (8, 4), (4, 2), (4, 2), (4, 2))
"""Width and stride of each convolution: a vector for 160 samples (Oord et al. 2018)."""


class WaveConvolutions(nn.Module):
    """Samples in blocks (B, T, 160) to a vector (B, T, ``size``) of each block, by the convolutions
    of :data:`LAYERS`, each followed by a layer norm and ReLU.

    A vector depends on its block and on samples before it, of which a recording has none but zeros
    at its beginning: nothing behind the block, and so no padding, changes it.
    """

    def __init__(self, size: int):
        super().__init__()
        self.size = size
        self.convolutions = nn.ModuleList(
            nn.Conv1d(size if number else 1, size, width, stride) for number, (width, stride) in enumerate(LAYERS)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(size) for _ in LAYERS)
        for convolution in self.convolutions:
            nn.init.kaiming_normal_(convolution.weight, nonlinearity="relu")

    def forward(self, samples: Tensor) -> Tensor:
        states = samples.flatten(1)[:, None]
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            before = convolution.kernel_size[0] - convolution.stride[0]
            states = convolution(F.pad(states, (before, 0)))
            states = F.relu(norm(states.mT)).mT
        return states.mT
