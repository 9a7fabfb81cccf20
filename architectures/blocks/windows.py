"""Windows over the positions of a text, as a convolution without padding reads them, that lie
inside the text and not in the padding of its batch."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def lengthen(vectors: Tensor, window: int) -> Tensor:
    """Vectors (B, T, ...) with zeros behind them, so that there is at least one ``window``."""
    short = max(0, window - vectors.shape[1])
    return F.pad(vectors, (0, 0) * (vectors.dim() - 2) + (0, short))


def windows_inside(lengths: Tensor, window: int) -> Tensor:
    """Number of windows inside each text (B,): at least one, so that a text shorter than a window
    has one."""
    return (lengths - window).clamp(min=0) + 1


def window_mask(lengths: Tensor, window: int, starts: int) -> Tensor:
    """Mask (B, starts), true at the positions where a window begins that lies inside its text."""
    return torch.arange(starts, device=lengths.device) < windows_inside(lengths, window)[:, None]
