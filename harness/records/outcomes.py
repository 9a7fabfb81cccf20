"""Outcomes of test units: per-unit sums of the main metric, from which intervals, paired tests and
error analyses are computed."""

from __future__ import annotations

from collections.abc import Sequence
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
    names and the numbers of examples by actual (rows) and predicted (columns) class. ``clusters``
    numbers the group of dependent units (questions of one story, recordings of one speaker) that
    each unit is in; None where no two units depend on each other, or nothing is known of it.
    """

    metric: str
    units: list[str]
    numerators: np.ndarray
    denominators: np.ndarray
    slices: dict[str, list[Slice]]
    confusion: tuple[list[str], list[list[int]]] | None = None
    clusters: list[int] | None = None

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
            "clusters": self.clusters,
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
        clusters = fields.get("clusters")  # older files have none
        return cls(
            _typed(fields["metric"], str),
            units,
            numerators,
            denominators,
            slices,
            confusion or None,
            None if clusters is None else _clusters(clusters, len(units)),
        )


def numbered(names: Sequence[str]) -> list[int] | None:
    """Number of each name, counted from 0 by first occurrence; None if no name occurs twice."""
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return [numbers[name] for name in names] if len(numbers) < len(names) else None


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


def _clusters(numbers: Any, units: int) -> list[int]:
    """Numbers from 0, one for each unit and none left out; ``ValueError`` for anything else."""
    found = [_typed(number, int) for number in _typed(numbers, list)]
    if len(found) != units or set(found) != set(range(len(set(found)))):
        raise ValueError(f"clusters are not numbered from 0, one number for each of {units} units")
    return found


def _shortest(values: np.ndarray) -> list[float | int]:
    """Values for JSON, whole numbers as integers."""
    return [int(value) if value.is_integer() else value for value in values.tolist()]
