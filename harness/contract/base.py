"""Parts that all checks share: their results, and the floor that a learner must beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harness import registry
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
