"""Means over seeds, and the best of several."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Summary:
    """Mean of ``n`` values and their sample standard deviation (divisor n - 1); None for a single
    value."""

    mean: float
    sd: float | None
    n: int


def summarise(values: Sequence[float]) -> Summary:
    """Mean, standard deviation and number of ``values``, independent of their order; raises
    ``ValueError`` if there are none."""
    n = len(values)
    if n == 0:
        raise ValueError("no values to summarise")
    mean = math.fsum(values) / n
    sd = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1)) if n > 1 else None
    return Summary(mean, sd, n)


def leaders(values: Sequence[float], *, lower_is_better: bool, digits: int) -> set[int]:
    """Positions of the best of ``values``; several if equal after rounding to ``digits``, as a
    table shows them."""
    rounded = [round(value, digits) for value in values]
    best = (min if lower_is_better else max)(rounded, default=None)
    return {i for i, value in enumerate(rounded) if value == best}
