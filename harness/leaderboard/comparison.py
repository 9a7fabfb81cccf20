"""Intervals, paired tests and tie groups of one task's results, from the outcomes of test units."""

from __future__ import annotations

import functools
from collections import Counter
from dataclasses import dataclass

import numpy as np

from harness.errors import RecordError
from harness.leaderboard import significance
from harness.leaderboard.board import Board, Pairs, Result, Section, comparable
from harness.metrics import display_info
from harness.records.outcomes import Outcomes


@dataclass(frozen=True)
class Comparison:
    """The results of one section's task whose records have outcomes, best first, and the statistics
    over their test units.

    ``outcomes`` holds those of every seed of a result. ``intervals`` (rows, 2) are the 95 %
    bootstrap intervals of the scores over test units, seeds averaged. ``p`` (rows, rows) holds the
    two-sided p-value of a paired randomisation test for every pair, not corrected. ``rivals`` are
    the rows tested for the first place (:func:`~harness.leaderboard.board.comparable`).
    ``tie_group`` are those that share it: the best, and those not significantly worse after Holm's
    correction. Scores are on the scale of the records.
    """

    metric: str
    results: Pairs
    outcomes: list[list[Outcomes]]
    units: list[str]
    scores: np.ndarray
    intervals: np.ndarray
    p: np.ndarray
    rivals: frozenset[int]
    tie_group: frozenset[int]

    def row(self, result: Result) -> int | None:
        """Position of a result; None if its records have no outcomes."""
        return next((i for i, (_, other) in enumerate(self.results) if other is result), None)

    def interval(self, result: Result) -> tuple[float, float] | None:
        """95 % interval of a result's score; None if its records have no outcomes."""
        row = self.row(result)
        return None if row is None else (float(self.intervals[row][0]), float(self.intervals[row][1]))

    def shares_first_place(self, result: Result) -> bool:
        """True for the best result and those not significantly worse."""
        return self.row(result) in self.tie_group


@functools.cache
def compare(board: Board, section: Section, task: str) -> Comparison | None:
    """Comparison of the results of one task in one section; None if no record there has outcomes.

    It is limited to the results on the test data that most of them share. A damaged file of
    outcomes becomes a notice of the board.
    """
    metric = board.main_metric(task)
    results: Pairs = []
    outcomes: list[list[Outcomes]] = []
    for architecture, result in _on_common_data(board.results(section, task)):
        if seeds := _outcomes(board, metric, result, outcomes[0][0].units if outcomes else None):
            results.append((architecture, result))
            outcomes.append(seeds)
    if not results:
        return None
    numerators = np.array([np.mean([seed.numerators for seed in seeds], axis=0) for seeds in outcomes])
    denominators = np.array([np.mean([seed.denominators for seed in seeds], axis=0) for seeds in outcomes])
    scores = numerators.sum(1) / np.maximum(denominators.sum(1), 1e-12)
    info = display_info(metric)
    order = sorted(range(len(results)), key=lambda i: (-info.quality(scores[i]), results[i][0], results[i][1].settings))
    results, outcomes = [results[i] for i in order], [outcomes[i] for i in order]
    numerators, denominators, scores = numerators[order], denominators[order], scores[order]
    p = significance.paired_p(numerators, denominators)
    rivals = {result for _, result in comparable(results, metric)}
    rows = [i for i, (_, result) in enumerate(results) if result in rivals]
    ties = significance.tie_group(scores[rows].tolist(), p[np.ix_(rows, rows)], lower_is_better=info.lower_is_better)
    return Comparison(
        metric,
        results,
        outcomes,
        outcomes[0][0].units,
        scores,
        significance.intervals(numerators, denominators),
        p,
        frozenset(rows),
        frozenset(rows[i] for i in ties),
    )


def _on_common_data(results: Pairs) -> Pairs:
    """Results whose records were all scored on the test data that most of the records share."""
    data = Counter(record.data.get("test") for _, result in results for record in result.ok)
    common = max(data, key=lambda test: (data[test], test or ""), default=None)
    return [
        (architecture, result)
        for architecture, result in results
        if result.ok and all(record.data.get("test") == common for record in result.ok)
    ]


def _outcomes(board: Board, metric: str, result: Result, units: list[str] | None) -> list[Outcomes]:
    """Outcomes of every seed; empty if one of them is missing, damaged or of another metric."""
    seeds: list[Outcomes] = []
    for record in result.ok:
        try:
            outcomes = board.store.load_outcomes(record, units)
        except RecordError as error:
            board.notices.append(str(error))
            return []
        if outcomes is None or outcomes.metric != metric:
            return []
        units = outcomes.units
        seeds.append(outcomes)
    return seeds
