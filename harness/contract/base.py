"""Parts that all checks share: their results, and the floor that a learner must beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harness import registry
from harness.metrics import better, info
from harness.metrics.information import PERCENT
from harness.problems import problem
from harness.registry import TaskEntry
from harness.task import Row

CLEARLY = 0.05
"""Margin over the floor that a plugin's main metric must be on the mini task it learns."""


@dataclass(frozen=True)
class Result:
    """One check: its name, whether it passed, and what was found when it did not."""

    name: str
    passed: bool
    message: str = ""


class Broken(AssertionError):
    """A check that did not hold."""


def require(condition: bool, message: str) -> None:
    """Raise :class:`Broken` with the message unless the condition holds."""
    if not condition:
        raise Broken(message)


def floor(task: TaskEntry, train: list[Row], rows: list[Row]) -> list[Any]:
    """Predictions without a model that an architecture must beat on a task."""
    return next(iter(problem(task.type).floors(train, rows).values()))


def perfect(metric: str) -> float:
    """The best value of a metric of which more is better in fractions, or less in anything."""
    return 0.0 if better(metric, 0.0, 1.0) else 1.0


def is_fraction(metric: str) -> bool:
    """True for a metric that counts, and can be perfect; a squared error comes near at best."""
    return info(metric).unit == PERCENT


def above(metric: str, limit: float, share: float) -> float:
    """The value that is better than ``limit`` by ``share``; on a scale that is no fraction, by that
    share of what is missing to the perfect value."""
    step = share if is_fraction(metric) else share * abs(perfect(metric) - limit)
    return limit - step if info(metric).lower_is_better else limit + step


def shortened(row: Row, task_type: str) -> Row:
    """The row with one word in each text, and an answer that fits it."""
    return problem(task_type).shortened(row)


def with_unknown_words(row: Row) -> Row:
    """The row with every word of its texts replaced by one that no training text has.

    An older form of :meth:`harness.problems.base.Problem.with_unknown_words`: the columns tell the
    task type.
    """
    types = registry.entries("problems").values()
    return problem(next(entry.id for entry in types if set(entry.columns) <= set(row))).with_unknown_words(row)
