"""The order in which architectures are tried, by what committed records say of tasks like the
user's."""

from __future__ import annotations

import csv
import functools
import math
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from statistics import median
from typing import NamedTuple

from harness import registry
from harness.model_selection.candidates import Candidate
from harness.registry import TaskEntry
from harness.running.estimate import measured_speeds
from harness.running.fitting import loadable, reason_to_skip
from harness.running.grid import hyperparameters
from harness.settings import FULL, Budget
from harness.task import Row
from harness.views.base import words_of

EVIDENCE = Path(__file__).with_name("evidence.csv")
"""A line for each committed record that says how an architecture does; ``python -m tools.evidence``
makes it."""
START = 4.0
"""Seconds of a cell that trains next to nothing."""
CHEAP = 30.0
"""Seconds for which the cheapest come first, whatever the records say: a first table has to stand
within a minute, also beside other work."""
OTHER_TYPE = 2.0
"""Distance of a task of another type whose rows have the same texts, in doublings."""
ONE_SIDED = 4.0
"""Distance of what only one of two tasks has, as recordings have no words, and tags no classes."""
SHOWN = 3
"""Nearest tasks, and next architectures, that the reason of the order names."""


class Line(NamedTuple):
    """The content of a record: the ``score`` on test, where more is better, of an architecture on a
    task of a type, on one of whose budgets it ``read`` so many examples in all passes. ``words`` is
    the mean length of an example, ``classes`` the number of classes; None where the record does not
    tell."""

    key: str
    type: str
    task: str
    budget: str
    architecture: str
    read: int
    words: float | None
    classes: int | None
    score: float


class Likeness(NamedTuple):
    """The traits by which tasks are alike: type, examples that a training reads, and mean words of
    an example and number of classes, None where there are none."""

    type: str
    read: float
    words: float | None
    classes: float | None

    def distance(self, other: Likeness) -> float:
        """Doublings between two tasks, in all; infinite where their rows have other texts."""
        problems = registry.entries("problems")
        if self.type not in problems or other.type not in problems:
            return math.inf
        if problems[self.type].texts != problems[other.type].texts:
            return math.inf
        pairs = [(self.read, other.read), (self.words, other.words), (self.classes, other.classes)]
        doublings = sum(abs(math.log2(a / b)) if a and b else ONE_SIDED for a, b in pairs if a or b)
        return doublings + (OTHER_TYPE if self.type != other.type else 0.0)


class Order(NamedTuple):
    """Candidates in the order of their turns, and the reason of it in words."""

    candidates: list[Candidate]
    reason: str


def read_by(budget: Budget, rows: int) -> int:
    """Examples that a training of a budget reads of so many rows."""
    return max(budget.passes * rows, budget.min_steps * budget.batch_size)


def likeness(task: TaskEntry, rows: int, sample: Sequence[Row]) -> Likeness:
    """Likeness of a task with so many rows for training, of which a sample is given."""
    texts = registry.entry("problems", task.type).texts
    counts = [sum(len(words_of(row[name])) for name in texts) for row in sample]
    classes = len({str(row["label"]) for row in sample if "label" in row}) if task.type in ("classify", "match") else 0
    words = sum(counts) / len(counts) if texts and counts else None
    return Likeness(task.type, read_by(registry.budgets_of(task)[FULL], rows), words, classes or None)


@functools.cache
def lines(file: Path = EVIDENCE) -> tuple[Line, ...]:
    """The lines of a table of evidence."""
    with file.open(encoding="utf-8", newline="") as opened:
        return tuple(
            Line(
                row["key"],
                row["type"],
                row["task"],
                row["budget"],
                row["architecture"],
                int(row["read"]),
                float(row["words"]) if row["words"] else None,
                int(row["classes"]) if row["classes"] else None,
                float(row["score"]),
            )
            for row in csv.DictReader(opened)
        )


def groups(evidence: Iterable[Line]) -> dict[tuple[str, str], list[Line]]:
    """Lines by task and budget: those that compare."""
    found: dict[tuple[str, str], list[Line]] = {}
    for line in evidence:
        found.setdefault((line.task, line.budget), []).append(line)
    return found


def _likeness_of(group: Sequence[Line]) -> Likeness:
    words, classes = [line.words for line in group if line.words], [line.classes for line in group if line.classes]
    read = median(line.read for line in group)
    return Likeness(group[0].type, read, median(words) if words else None, median(classes) if classes else None)


def expected(like: Likeness, evidence: Iterable[Line]) -> tuple[dict[str, float], list[str]]:
    """The place at which each architecture is expected between the worst (0) and the best (1) of
    those with a record, by id; and the tasks that say so, the nearest first.

    It is the mean of its places on the tasks with the same texts, each of which weighs half as much
    for a doubling of its distance.
    """
    sums: dict[str, list[float]] = {}
    near: list[tuple[float, str]] = []
    for (task, budget), group in groups(evidence).items():
        distance = like.distance(_likeness_of(group))
        worst, best = min(line.score for line in group), max(line.score for line in group)
        if not math.isfinite(distance) or worst == best:
            continue
        near.append((distance, f"{task} ({budget})"))
        for line in group:
            total = sums.setdefault(line.architecture, [0.0, 0.0])
            total[0] += 2.0**-distance * (line.score - worst) / (best - worst)
            total[1] += 2.0**-distance
    return {id: place / weight for id, (place, weight) in sums.items()}, [name for _, name in sorted(near)]


def to_begin_with(task: TaskEntry) -> list[str]:
    """Two architectures that fit a task and read the most rows a second, such as have learnt a task
    of its type before."""
    known = {line.architecture for line in lines() if line.type == task.type and line.budget == FULL}
    speeds, found = measured_speeds(), list[str]()
    chosen = [each for each in registry.entries("architectures").values() if each.kind != "floor" and not each.sees]
    for each in sorted(chosen, key=lambda each: (each.id not in known, bool(each.parents), -speeds.get(each.id, 0.0))):
        if loadable([each])[0] and reason_to_skip(each, task, hyperparameters(each)) is None:
            found.append(each.id)
            if len(found) == 2:
                break
    return found


def ordered(candidates: Sequence[Candidate], like: Likeness, evidence: Iterable[Line]) -> Order:
    """The candidates, which come by their cost: floors, then the cheapest for :data:`CHEAP`
    seconds, then those with the highest expected place for each second of a cell. Those without a
    record keep their place."""
    places, near = expected(like, evidence)
    first, spent = 0, 0.0
    for candidate in candidates:
        spent += 0.0 if candidate.is_floor else START + candidate.work
        if spent > CHEAP:
            break
        first += 1
    later = candidates[first:]
    known = [each for each in later if each.entry.id in places and math.isfinite(each.work)]
    known.sort(key=lambda each: -places[each.entry.id] / (START + each.work))
    turns = iter(known)
    moved = {each.entry.id for each in known}
    found = [next(turns) if each.entry.id in moved else each for each in later]
    if not known:
        return Order(list(candidates), "Order: the cheapest first.")
    named = ", ".join(f"{each.entry.id} {places[each.entry.id]:.2f}" for each in islice(known, SHOWN))
    rest = f"; those without a record ({len(later) - len(known)}) keep their place by cost"
    rest = rest if len(later) > len(known) else ""
    reason = (
        f"Order: the cheapest first for {CHEAP:.0f} s, then those that records of like tasks"
        f" ({', '.join(near[:SHOWN])}) let expect most of for each second, between 0, the worst there, and 1, the"
        f" best: {named}{rest}."
    )
    return Order([*candidates[:first], *found], reason)
