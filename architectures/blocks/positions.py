"""Position vectors."""

from __future__ import annotations

import torch
from torch import Tensor


def sinusoids(length: int, size: int, like: Tensor) -> Tensor:
    """Vectors (length, size) of the positions 0, 1, ...: sin(i / 10000^(2k/size)) in column 2k, its
    cosine in 2k + 1.

    Of the device and type of ``like``. Vaswani et al. 2017, section 3.5; an odd size ends on a
    sine.
    """
    positions = torch.arange(length, device=like.device, dtype=torch.float32)
    wavelengths = 10000 ** (torch.arange(0, size, 2, device=like.device, dtype=torch.float32) / size)
    angles = positions[:, None] / wavelengths
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :size].to(like.dtype)
