"""Parts that all checks share: their results, and the floor that a learner must beat."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from harness import registry
from harness.kinds import Architecture
from harness.metrics import CLEARLY, above, better, info, main_score
from harness.problems import problem
from harness.registry import TaskEntry
from harness.task import Row
from harness.views.base import View


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


Check = Callable[[], str | None]
"""Raises an error when something does not hold; may return what is worth knowing."""


def run(name: str, body: Check, told: type[Exception] = Broken) -> Result:
    """The result of one check, whose body returns what is worth knowing, or nothing.

    An error of the type ``told``, as :class:`Broken`, says by itself what is wrong; of others the
    name is shown.
    """
    try:
        return Result(name, True, body() or "")
    except (Broken, told) as found:
        return Result(name, False, str(found))
    except Exception as error:  # a plugin may raise anything, and each crash is the failure of one check
        return Result(name, False, f"{type(error).__name__}: {error}")


def floor(task: TaskEntry, train: list[Row], rows: list[Row]) -> list[Any]:
    """Predictions without a model, the first of those of a task's type: for files of users."""
    return problem(task.type).floor(train, rows)


def floor_score(
    task: TaskEntry,
    train: list[Row],
    rows: list[Row],
    system: type[Architecture] = Architecture,
    view: View | None = None,
) -> float:
    """The main metric of the first of the floors that a system must beat; ``view`` is what it reads
    by, where that is fitted already."""
    return next(_floor_scores(task, train, rows, system, view))


def best_floor(task: TaskEntry, train: list[Row], rows: list[Row], system: type[Architecture] = Architecture) -> float:
    """The best main metric on the rows that needs no learning."""
    return max(_floor_scores(task, train, rows, system), key=info(task.main_metric).quality)


def _floor_scores(
    task: TaskEntry, train: list[Row], rows: list[Row], system: type[Architecture], view: View | None = None
) -> Iterator[float]:
    adapter = registry.load(task)(task)
    floors = problem(task.type).floors_of(system, train, rows, view).values()
    return (main_score(adapter, predictions, rows) for predictions in floors)


class Flipped:
    """Rows of dev with wrong answers (:meth:`harness.problems.base.Problem.flipped`).

    A system that learns from ``train`` alone does not give them: its main metric on them is not
    above ``limit``, which is chance and :data:`CLEARLY`. ``right`` are the rows as they are.
    """

    def __init__(self, task: TaskEntry, train: list[Row], right: list[Row], rows: list[Row]):
        self.metric, self.task, self.right, self.rows = task.main_metric, registry.load(task)(task), right, rows
        self.limit = above(self.metric, best_floor(task, train, rows), CLEARLY)

    def score(self, predictions: list[Any]) -> float:
        """The main metric by the wrong answers, but no more than the limit for who gives the right
        ones oftener: a model that knows little spreads its mistakes unevenly."""
        wrong, right = (main_score(self.task, predictions, rows) for rows in (self.rows, self.right))
        return self.limit if better(self.metric, wrong, self.limit) and better(self.metric, right, wrong) else wrong

    def require_unlearnt(self, found: float) -> str:
        """Raise :class:`Broken` for a score that tells that they were learnt."""
        require(
            not better(self.metric, found, self.limit),
            f"shown wrong answers of dev, it gives them: {self.metric} by them is {found:.3f}, and chance with a margin"
            f" is {self.limit:.3f}; dev is there to choose settings, not to learn from",
        )
        return ""


def shortened(row: Row, task_type: str) -> Row:
    """The row with one word in each text, and an answer that fits it."""
    return problem(task_type).shortened(row)


def with_unknown_words(row: Row) -> Row:
    """The row with every word of its texts replaced by one that no training text has.

    An older form of :meth:`harness.problems.base.Problem.with_unknown_words`, which files of users
    may import: the columns tell the task type.
    """
    types = registry.entries("problems").values()
    return problem(next(entry.id for entry in types if set(entry.columns) <= set(row))).with_unknown_words(row)


NOT_FLIPPED = "not asked of this task type: its answers depend on the texts, so no wrong ones can be made"
"""Note in the place of the check where the task type has no wrong answers."""
