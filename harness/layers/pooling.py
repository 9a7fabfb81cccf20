"""Pooling of states over the real positions of a text."""

from __future__ import annotations

import torch
from torch import Tensor


def pool(states: Tensor, mask: Tensor, how: str) -> Tensor:
    """One vector (B, size) from states (B, T, size): ``max``, ``mean``, ``last`` or ``ends`` over
    the real positions.

    ``ends`` joins the first half of the last state with the second half of the first: the end
    states of a bidirectional encoder. A text without positions gives zeros by ``max`` and ``mean``,
    and the states at its first place by the others.
    """
    lengths = mask.sum(1)
    if how == "max":
        pooled = states.masked_fill(~mask[..., None], -torch.inf).amax(1)
        return torch.where(lengths[:, None] > 0, pooled, torch.zeros_like(pooled))
    if how == "mean":
        return (states * mask[..., None]).sum(1) / lengths.clamp(min=1)[:, None]
    last = states[torch.arange(len(states), device=states.device), (lengths - 1).clamp(min=0)]
    if how == "last":
        return last
    if how == "ends":
        half = states.shape[-1] // 2
        return torch.cat([last[:, :half], states[:, 0, half:]], dim=1)
    raise ValueError(f"pooling {how!r} is none of max, mean, last, ends")
