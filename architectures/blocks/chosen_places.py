"""Some places of each text, one behind another."""

from __future__ import annotations

import torch
from torch import Tensor


def numbered(asked: Tensor) -> tuple[Tensor, Tensor]:
    """The places (B, U) where ``asked`` (B, T) is true, those of a text one after another, and true
    (B, U) where there are so many; others stand for nothing."""
    counts = asked.sum(1, keepdim=True)
    places = asked.long().argsort(dim=1, descending=True, stable=True)[:, : int(counts.max())]
    return places, torch.arange(places.shape[1], device=asked.device) < counts
