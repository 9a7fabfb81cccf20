"""The von Mises-Fisher distribution: directions around a mean one, the closer to it the higher the
concentration."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

NEARLY = 1 - 1e-6
"""Greatest mean length of directions from which a concentration is estimated: where all are the
same it would be infinite."""


def fitted(directions: Tensor) -> tuple[Tensor, float]:
    """Mean direction (D,) and concentration of directions (N, D) of length 1.

    The concentration is r (D - r^2) / (1 - r^2), r the length of their mean, which is close to the
    most likely one (Banerjee et al. 2005).
    """
    mean = directions.mean(0)
    r = min(mean.norm().item(), NEARLY)
    return F.normalize(mean, dim=0), r * (len(mean) - r * r) / (1 - r * r)


def drawn(mean: Tensor, concentration: float, count: int, generator: torch.Generator) -> Tensor:
    """So many directions (count, D) around a mean one (D,).

    The cosine to the mean is drawn by rejection (Wood 1994), the rest is a direction of chance
    across it.
    """
    cosines = _cosines(len(mean), concentration, count, generator).to(mean.dtype)[:, None]
    across = torch.randn(count, len(mean), generator=generator, dtype=mean.dtype)
    across = F.normalize(across - (across @ mean)[:, None] * mean, dim=1)
    return cosines * mean + (1 - cosines**2).sqrt() * across


def _cosines(dims: int, concentration: float, count: int, generator: torch.Generator) -> Tensor:
    """Cosines (count,) between directions and their mean."""
    free = dims - 1
    slope = free / (2 * concentration + math.sqrt(4 * concentration**2 + free**2))
    middle = (1 - slope) / (1 + slope)
    bound = concentration * middle + free * math.log(1 - middle**2)
    found = torch.empty(0, dtype=torch.float64)
    while len(found) < count:
        # A beta number of two equal parameters, of two sums of squares.
        parts = torch.randn(2, count, free, generator=generator, dtype=torch.float64).square().sum(-1)
        z = parts[0] / parts.sum(0)
        cosines = (1 - (1 + slope) * z) / (1 - (1 - slope) * z)
        kept = torch.rand(count, generator=generator, dtype=torch.float64).log()
        allowed = concentration * cosines + free * (1 - middle * cosines).log() - bound >= kept
        found = torch.cat([found, cosines[allowed]])
    return found[:count]
