"""What saved predictions say beyond a score: intervals, paired tests and tie groups of one task in
one section."""

from __future__ import annotations

import functools
from collections import Counter
from dataclasses import dataclass

import numpy as np

from harness.errors import RecordError
from harness.leaderboard import significance
from harness.leaderboard.board import Board, Result, Section, comparable
from harness.metrics import display_info
from harness.records.outcomes import Outcomes


@dataclass(frozen=True)
class Evidence:
    """The results of one section's task whose records have outcomes, best first, and the statistics
    over their test units.

    ``outcomes`` holds those of every seed of a result, ``intervals`` (rows, 2) the 95 % bootstrap
    interval of its score over test units (seeds averaged), ``p`` (rows, rows) the two-sided p-value
    of a paired randomisation test for every pair, not corrected. ``rivals`` are the rows tested for
    the first place (:func:`~harness.leaderboard.board.comparable`), ``tied`` those that share it: the
    best, and those that differ from it by no more than chance after Holm's correction. Scores are
    fractions (WER too).
    """

    metric: str
    results: list[tuple[str, Result]]
    outcomes: list[list[Outcomes]]
    units: list[str]
    scores: np.ndarray
    intervals: np.ndarray
    p: np.ndarray
    rivals: frozenset[int]
    tied: frozenset[int]

    def row(self, result: Result) -> int | None:
        """Where a result stands here; None when its records have no outcomes."""
        return next((i for i, (_, other) in enumerate(self.results) if other is result), None)


@functools.cache
def evidence(board: Board, section: Section, task: str) -> Evidence | None:
    """The evidence of one task in one section; None when no record there has outcomes.

    Only results on the test data that most of them share take part. A damaged file of outcomes is a
    notice of the board.
    """
    metric = board.main_metric(task)
    found: list[tuple[str, Result, list[Outcomes]]] = []
    for architecture, result in _on_common_data(board, section, task):
        outcomes = _outcomes(board, metric, result, found[0][2][0].units if found else None)
        if outcomes:
            found.append((architecture, result, outcomes))
    if not found:
        return None
    numerators, denominators = (
        np.array([np.mean([getattr(seed, part) for seed in outcomes], axis=0) for *_, outcomes in found])
        for part in ("numerators", "denominators")
    )
    scores = numerators.sum(1) / np.maximum(denominators.sum(1), 1e-12)
    lower = display_info(metric).lower_is_better
    order = sorted(
        range(len(found)), key=lambda i: (scores[i] if lower else -scores[i], found[i][0], found[i][1].settings)
    )
    found, numerators, denominators, scores = (
        [found[i] for i in order],
        numerators[order],
        denominators[order],
        scores[order],
    )
    p = significance.paired_p(numerators, denominators)
    results = [(architecture, result) for architecture, result, _ in found]
    ranked = {result for _, result in comparable(results, metric)}
    rows = [i for i, (_, result) in enumerate(results) if result in ranked]
    tied = significance.tied(scores[rows].tolist(), p[np.ix_(rows, rows)], lower_is_better=lower)
    return Evidence(
        metric,
        results,
        [outcomes for *_, outcomes in found],
        found[0][2][0].units,
        scores,
        significance.intervals(numerators, denominators),
        p,
        frozenset(rows),
        frozenset(rows[i] for i in tied),
    )


def _on_common_data(board: Board, section: Section, task: str) -> list[tuple[str, Result]]:
    """Results whose records were all scored on the test data that most records here share."""
    mine = [
        (a, result)
        for (a, other), found in board.sections[section].items()
        if other == task
        for result in found
        if result.ok
    ]
    data = Counter(record.data.get("test") for _, result in mine for record in result.ok)
    common = max(data, key=lambda test: (data[test], test or ""), default=None)
    return [(a, result) for a, result in mine if all(record.data.get("test") == common for record in result.ok)]


def _outcomes(board: Board, metric: str, result: Result, units: list[str] | None) -> list[Outcomes]:
    """Outcomes of every seed; none where one of them is missing, damaged or of another metric."""
    found: list[Outcomes] = []
    for record in result.ok:
        try:
            outcomes = board.store.load_outcomes(record, units)
        except RecordError as error:
            board.notices.append(str(error))
            return []
        if outcomes is None or outcomes.metric != metric:
            return []
        units = outcomes.units
        found.append(outcomes)
    return found
