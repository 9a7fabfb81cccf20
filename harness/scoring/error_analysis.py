"""Error analysis of test predictions: the outcome of every unit, and scores of parts of the
test."""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.errors import DataError
from harness.metrics.units import unit_scores
from harness.records.outcomes import Outcomes, Slice, numbered, ratio
from harness.task import Row, Task, Tier, fingerprint

if TYPE_CHECKING:
    from pathlib import Path

    from harness.problems.base import Problem, Properties

LENGTHS = (5, 10, 20, 40)
"""The longest text of each part but the last, in words."""
UNKNOWN_SHARES = (0.0, 0.1, 0.25)
"""The largest share of unknown words of each part but the last."""


def known_words(problem: Problem, train: Iterable[Row]) -> frozenset[str]:
    """Words, in lower case, of the rows that a model was trained on; none where rows have no
    texts."""
    return frozenset(word for row in train for word in problem.words(row) or ())


def words_trained_on(
    task: Task, tier: Tier, folder: Path | None, most: int | None, expected: str | None
) -> frozenset[str] | None:
    """Words of the training rows with a digest; None where these cannot be read, or are others."""
    from harness.data.loaded_rows import training_rows
    from harness.problems import problem

    try:
        rows = training_rows(task, tier, folder, most).to_list()
    except (DataError, OSError, ValueError, NotImplementedError):
        return None
    return known_words(problem(task.entry.type), rows) if fingerprint(rows) == expected else None


def outcomes(
    problem: Problem, metric: str, predictions: Sequence[Any], rows: Sequence[Row], known: Container[str] | None
) -> Outcomes | None:
    """Outcomes of the predictions for the test rows, in their order; None where the metric has no
    parts.

    ``known`` are the :func:`known_words` of the model's training rows, None where those are not at
    hand.
    """
    units = unit_scores(metric, predictions, rows)
    if units is None:
        return None
    numerators, denominators = np.array(units.numerators), np.array(units.denominators)
    parts = properties(problem, units.rows, known)
    slices = {
        name: _slices(list(map(value, units.rows)), order, numerators, denominators)
        for name, (value, order) in parts.items()
    }
    slices |= problem.slices(metric, predictions, rows)
    clusters = numbered([problem.cluster(row) for row in units.rows])
    return Outcomes(
        metric, units.units, numerators, denominators, slices, problem.confusion(predictions, rows), clusters
    )


def properties(problem: Problem, rows: Sequence[Row], known: Container[str] | None) -> Properties:
    """Properties of a unit: those of all texts, then the problem's own."""
    if problem.words(rows[0]) is None:
        return problem.properties(rows)
    properties: Properties = {"length in words": (lambda row: _length(problem.words(row) or []), _length_names())}
    if known is not None:
        properties["unknown words"] = (lambda row: _unknown_share(problem.words(row) or [], known), _share_names())
    return properties | problem.properties(rows)


def _length(words: list[str]) -> str:
    return _length_names()[sum(len(words) > most for most in LENGTHS)]


def _unknown_share(words: list[str], known: Container[str]) -> str:
    share = sum(word not in known for word in words) / max(1, len(words))
    return _share_names()[sum(share > most for most in UNKNOWN_SHARES)]


def _length_names() -> list[str]:
    ranges = [f"{most + 1} to {following}" for most, following in itertools.pairwise(LENGTHS)]
    return [f"up to {LENGTHS[0]}", *ranges, f"more than {LENGTHS[-1]}"]


def _share_names() -> list[str]:
    percents = [f"{100 * share:.0f} %" for share in UNKNOWN_SHARES]
    return ["none", *(f"up to {percent}" for percent in percents[1:]), f"more than {percents[-1]}"]


def _slices(values: list[str], order: Sequence[str], numerators: np.ndarray, denominators: np.ndarray) -> list[Slice]:
    """Units and score of each part that has any."""
    slices: list[Slice] = []
    for part in order:
        where = np.array(values) == part
        if where.any():
            score = ratio(numerators[where], denominators[where]) if denominators[where].any() else None
            slices.append((part, int(where.sum()), score))
    return slices
