"""Outcomes of test units: per-unit sums of the main metric, from which intervals, paired tests and
error analyses are computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Slice = tuple[str, int, float | None]
"""A part of the test units: its name, its number of units, and their score (None: undefined)."""


@dataclass(frozen=True)
class Outcomes:
    """The main metric as a ratio of sums over units: score = sum(numerators) / sum(denominators).

    A unit is an example, or a question of a ranking task. Accuracy has 1 or 0 over 1, span F1 twice
    the right spans over predicted plus actual ones, word error rate the errors over the words.
    ``slices`` holds the parts of the test units by property ("length in words", "unknown words",
    "class", "entity type", "question word", "skill"). ``confusion``, for classes alone, is their
    names and the numbers of examples by actual (rows) and predicted (columns) class.
    """

    metric: str
    units: list[str]
    numerators: np.ndarray
    denominators: np.ndarray
    slices: dict[str, list[Slice]]
    confusion: tuple[list[str], list[list[int]]] | None = None

    @property
    def score(self) -> float:
        """Value of the metric, equal to that of :func:`harness.metrics.score`."""
        return ratio(self.numerators, self.denominators)

    def to_json(self, example_ids: list[str]) -> dict[str, Any]:
        """Fields for a file. Unit ids equal to the example ids are left out, and a denominator that
        all units share is stored once."""
        denominators = self.denominators.tolist()
        return {
            "metric": self.metric,
            "units": None if self.units == example_ids else self.units,
            "numerators": _shortest(self.numerators),
            "denominators": denominators[0] if len(set(denominators)) == 1 else _shortest(self.denominators),
            "slices": self.slices,
            "confusion": self.confusion,
        }

    @classmethod
    def from_json(cls, fields: dict[str, Any], units: list[str]) -> Outcomes:
        """Outcomes from the fields of :meth:`to_json`; ``units`` are the ids of the units, which
        the fields may lack. Raises ``KeyError``, ``TypeError`` or ``ValueError``."""
        numerators = np.array(fields["numerators"], dtype=float)
        denominators = np.broadcast_to(np.array(fields["denominators"], dtype=float), numerators.shape)
        if numerators.shape != (len(units),):
            raise ValueError(f"{len(units)} units, but outcomes of {numerators.shape}")
        if not (np.isfinite(numerators).all() and np.isfinite(denominators).all()):
            raise ValueError("an outcome is not a finite number")
        slices = {name: [_slice(*part) for part in parts] for name, parts in fields["slices"].items()}
        confusion = fields["confusion"] and _confusion(*fields["confusion"])
        return cls(_typed(fields["metric"], str), units, numerators, denominators, slices, confusion or None)


def ratio(numerators: np.ndarray, denominators: np.ndarray) -> float:
    """Sum of the numerators over that of the denominators; 0 where the latter is 0."""
    total = float(denominators.sum())
    return float(numerators.sum()) / total if total else 0.0


def _typed(value: Any, *types: type) -> Any:
    if type(value) not in types:
        raise TypeError(f"{value!r:.40} is not {' or '.join(t.__name__ for t in types)}")
    if isinstance(value, float) and not np.isfinite(value):
        raise ValueError(f"{value} is not a finite number")
    return value


def _slice(part: Any, units: Any, score: Any) -> Slice:
    return _typed(part, str), _typed(units, int), _typed(score, float, int, type(None))


def _confusion(labels: Any, counts: Any) -> tuple[list[str], list[list[int]]]:
    """Class names and a square of counts; ``ValueError`` for another shape."""
    rows = [[_typed(count, int) for count in row] for row in counts]
    if {len(row) for row in rows} | {len(rows)} != {len(labels)}:
        raise ValueError(f"{len(labels)} classes, but their confusion is not a square of that size")
    return [_typed(label, str) for label in labels], rows


def _shortest(values: np.ndarray) -> list[float | int]:
    """Values for JSON, whole numbers as integers."""
    return [int(value) if value.is_integer() else value for value in values.tolist()]
