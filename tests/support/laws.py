"""Laws by which parameters start, and whether numbers follow one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

ERRORS = 6.0
"""Standard errors by which a mean, a deviation or a fourth moment may miss. A whole run looks at
some ten thousand of them, and of true laws one in 500 million misses by as much."""
ENOUGH = 500
"""Numbers from which on the fourth moment tells a normal law from a uniform one."""


class Law(NamedTuple):
    """A distribution of scale 1: its mean, its deviation, its fourth standardised moment, the
    moment's standard error times the root of n, and what it lies within."""

    mean: float
    deviation: float
    fourth: float
    fourth_error: float
    low: float = -math.inf
    high: float = math.inf


UNIFORM = Law(0.0, 1 / math.sqrt(3), 1.8, 0.9, -1.0, 1.0)
LAWS = {
    "normal": Law(0.0, 1.0, 3.0, math.sqrt(24)),
    "uniform": UNIFORM,
    "uniform from 0": UNIFORM._replace(mean=0.5, deviation=1 / math.sqrt(12), low=0.0),
}


def fault(law: str, numbers: np.ndarray) -> str | None:
    """Says by which sign numbers, divided by their scale, do not follow a law; None if they may."""
    wanted, n = LAWS[law], numbers.size
    if numbers.min() < wanted.low - 1e-6 or numbers.max() > wanted.high + 1e-6:
        return "out of bounds"
    nearly = (wanted.high - wanted.low) * min(1.0, 16 / n)  # of true numbers one in e^16 sets stays below
    if math.isfinite(nearly) and (numbers.max() < wanted.high - nearly or numbers.min() > wanted.low + nearly):
        return "far from its bounds"
    deviation = numbers.std()
    if abs(numbers.mean() - wanted.mean) > ERRORS * wanted.deviation / math.sqrt(n):
        return "another mean"
    if abs(deviation / wanted.deviation - 1) > ERRORS * math.sqrt((wanted.fourth - 1) / (4 * n)) + 1 / n:
        return "another deviation"
    if n >= ENOUGH:
        fourth = ((numbers - numbers.mean()) ** 4).mean() / deviation**4
        if abs(fourth - wanted.fourth) > ERRORS * wanted.fourth_error / math.sqrt(n):
            return "another shape"
    return None


def described(numbers: np.ndarray) -> str:
    """Numbers in the words of a message."""
    if (numbers == numbers.flat[0]).all():
        return f"constant {numbers.flat[0]:.4g}"
    return (
        f"mean {numbers.mean():.4g}, deviation {numbers.std():.4g}, between {numbers.min():.4g} and"
        f" {numbers.max():.4g} ({numbers.size:,} numbers)"
    )


def repetition(tensor: np.ndarray) -> str | None:
    """Says along which dimension slices of one drawn tensor are alike."""
    for axis, count in enumerate(tensor.shape):
        slices = np.moveaxis(tensor, axis, 0).reshape(count, -1)
        different = len({each.tobytes() for each in slices})
        # Two numbers of 24 bits may be the same by chance, two vectors hardly.
        if different < (count if slices.shape[1] > 1 else (count + 1) // 2):
            return f"only {different} of {count} slices along dimension {axis} differ"
    return None


def draws(law: str) -> Callable[[Sequence[int], np.random.Generator], np.ndarray]:
    """A function that draws an array of a law of scale 1, for tests of the laws themselves."""
    return {
        "normal": lambda shape, rng: rng.normal(size=shape),
        "uniform": lambda shape, rng: rng.uniform(-1, 1, shape),
        "uniform from 0": lambda shape, rng: rng.uniform(0, 1, shape),
    }[law]
