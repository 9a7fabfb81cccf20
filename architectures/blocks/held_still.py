"""Parameters that a pass reads as constants."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def held_still(module: nn.Module, names: tuple[str, ...] = ("",)) -> Iterator[None]:
    """A block in whose passes no gradient goes to the parameters of a module whose names begin with
    one of ``names``, by default to none of them; afterwards they are trained as before."""
    still = [p for name, p in module.named_parameters() if p.requires_grad and name.startswith(names)]
    for parameter in still:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in still:
            parameter.requires_grad_(True)
