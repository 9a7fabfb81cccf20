"""The words before a word as language models with a window read them."""

from __future__ import annotations

import torch
from torch import Tensor


def contexts(before: Tensor, vectors: Tensor) -> tuple[Tensor, Tensor]:
    """The last n vectors (B, T, n, D) at each place of a stretch, the nearest last, and the n - 1
    that stand before the next stretch.

    ``before`` (B, n - 1, D) stand before this one, whose own are ``vectors`` (B, T, D).
    """
    size, joined = before.shape[1], torch.cat([before, vectors], dim=1)
    return joined.unfold(1, size + 1, 1).transpose(2, 3), joined[:, joined.shape[1] - size :]
