"""Information on a metric: label, direction, unit, and scale on pages."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, TypeVar

PERCENT = "%"
PER_TOKEN = "per token"
"""Unit of metrics that are comparable only between systems with the same tokens."""


Number = TypeVar("Number", float, Decimal)


def percent(value: Number) -> Number:
    """A fraction in percent."""
    return 100 * value


def unchanged(value: Number) -> Number:
    """The value itself."""
    return value


def exponential(value: float | Decimal) -> float:
    """Perplexity of a mean negative log-likelihood in nats; infinite from 700 nats on."""
    return math.exp(value) if value < 700 else math.inf


@dataclass(frozen=True)
class MetricInfo:
    """One metric: ``name`` in records and tasks, ``label`` on pages, the ``better`` direction, the
    ``unit`` of the shown value ("" for none) and its decimals (``digits``).

    ``show`` turns a recorded value into the shown one and must grow with it. Before rounding it is
    given the exact decimal, because 100 times a binary fraction may round to another value than the
    fraction does.
    """

    name: str
    label: str
    better: Literal["higher", "lower"] = "higher"
    unit: str = PERCENT
    digits: int = 1
    show: Callable[[Any], float | Decimal] = percent

    @property
    def lower_is_better(self) -> bool:
        """True for error rates and perplexity."""
        return self.better == "lower"

    def quality(self, value: float) -> float:
        """The value with its sign such that more is better."""
        return -value if self.lower_is_better else value

    def scale(self, value: float) -> float:
        """A recorded value on the scale of the pages, not rounded."""
        return float(self.show(value))

    def round(self, value: float) -> float:
        """A recorded value on the scale of the pages, with :attr:`digits` decimals."""
        return self._rounded(self.show(Decimal(value)))

    def format(self, value: float) -> str:
        """Text of :meth:`round`."""
        return f"{self.round(value):.{self.digits}f}"

    def plotted(self, value: float) -> float:
        """A recorded value on the scale of the pages, with one decimal more than in a table."""
        return round(self.scale(value), self.digits + 1)

    def scale_deviation(self, mean: float, deviation: float) -> float:
        """Half the shown distance between ``mean - deviation`` and ``mean + deviation``, not
        rounded; on a linear scale, the shown deviation itself."""
        return float(self._deviation(mean, deviation))

    def format_deviation(self, mean: float, deviation: float) -> str:
        """Text of :meth:`scale_deviation` with :attr:`digits` decimals."""
        return f"{self._rounded(self._deviation(mean, deviation)):.{self.digits}f}"

    def _deviation(self, mean: float, deviation: float) -> Decimal:
        low, high = (Decimal(self.show(Decimal(mean) + sign * Decimal(deviation))) for sign in (-1, 1))
        return high if high.is_infinite() else (high - low) / 2

    def _rounded(self, shown: Any) -> float:
        return float(round(shown, self.digits)) if math.isfinite(shown) else float(shown)
