"""The squashing of capsules as Sabour et al. 2017 have it."""

from __future__ import annotations

import torch
from torch import Tensor


def squash(vectors: Tensor) -> Tensor:
    """|s|^2 / (1 + |s|^2) * s / |s|: the direction of each vector (..., size) with a length below
    one, a half for a vector of length one."""
    length = torch.linalg.vector_norm(vectors, dim=-1, keepdim=True)
    return length / (1 + length**2) * vectors
