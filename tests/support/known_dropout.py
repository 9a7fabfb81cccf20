"""A dropout whose draw is known, to tell where a model drops numbers by what it computes."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def uneven(numbers: Tensor) -> Tensor:
    """Of the numbers (..., size) every second one is halved, and the others grow by a half: what is
    dropped twice differs from what is dropped once."""
    return numbers * (1.5 - torch.arange(numbers.shape[-1]) % 2)


class Uneven(nn.Module):
    """:func:`uneven` in the place of a dropout."""

    p = 0.5

    def forward(self, numbers: Tensor) -> Tensor:
        return uneven(numbers)


def as_is(numbers: Tensor) -> Tensor:
    """The numbers, of which none is dropped."""
    return numbers
