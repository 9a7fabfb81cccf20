"""Small models for tests of what their layers compute."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import nn

M = TypeVar("M", bound=nn.Module)


def small(model: Callable[..., M], *arguments: Any, stretch: float | None = 3.0, **sizes: Any) -> M:
    """A model of these sizes in evaluation mode, always with the same weights.

    Freshly made models attend nearly uniformly, gates stand at a half and biases at zero, so that
    many mistakes change no result. Matrices are therefore multiplied by ``stretch``, and normally
    distributed numbers are added to biases and other vectors. None keeps the first weights.
    """
    torch.manual_seed(0)
    made = model(*arguments, **sizes).eval()
    if stretch is not None:
        with torch.no_grad():
            for parameter in made.parameters():
                parameter.mul_(stretch) if parameter.dim() > 1 else parameter.add_(torch.randn_like(parameter))
    return made
