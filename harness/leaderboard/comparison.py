"""Intervals, paired tests and tie groups of one task's results, from the outcomes of test units."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.errors import RecordError
from harness.leaderboard import significance
from harness.leaderboard.board import Board
from harness.leaderboard.results import Pairs, Result, Section
from harness.metrics import display_info
from harness.records.outcomes import Outcomes


@dataclass(frozen=True)
class Comparison:
    """The results of one section's task whose records have outcomes, best first, and the statistics
    over their seeds and test units (:mod:`harness.leaderboard.significance`).

    ``outcomes`` holds those of every seed of a result. ``intervals`` (rows, 2) are the 95 %
    intervals of the scores, seeds averaged, over other seeds and other texts. ``p`` (rows, rows)
    holds the two-sided p-value of every pair, not corrected, and ``margins`` (rows, rows) half the
    width of the 95 % interval of its difference. ``rivals`` are the rows tested for the
    first place: those of one group (:meth:`~harness.leaderboard.board.Board.rivals`) that are above
    the floor; ``corrected`` holds the p-value of each one's distance to the best of them, corrected
    for their number. ``tie_group`` are the rivals that share the first place: the best, and those
    that cannot be told apart from it. ``told_apart`` is the number of pairs of rivals that differ
    at all, ``untested`` that of results of the group without outcomes of these units, and
    ``unbeaten`` that of those among them which score no worse than the best. Scores are on the
    scale of the records.
    """

    metric: str
    results: Pairs
    outcomes: list[list[Outcomes]]
    units: list[str]
    scores: np.ndarray
    intervals: np.ndarray
    p: np.ndarray
    margins: np.ndarray
    rivals: frozenset[int]
    corrected: dict[int, float]
    tie_group: frozenset[int]
    told_apart: int
    untested: int
    unbeaten: int

    def row(self, result: Result) -> int | None:
        """Position of a result; None if its records have no outcomes."""
        return next((i for i, (_, other) in enumerate(self.results) if other is result), None)

    def interval(self, result: Result) -> tuple[float, float] | None:
        """95 % interval of a result's score; None if its records have no outcomes."""
        row = self.row(result)
        return None if row is None else (float(self.intervals[row][0]), float(self.intervals[row][1]))

    def shares_first_place(self, result: Result) -> bool | None:
        """True for the best result and those that cannot be told apart from it; None for those that
        are not tested for the first place."""
        row = self.row(result)
        return row in self.tie_group if row in self.rivals else None

    def corrected_p(self, result: Result) -> float | None:
        """P-value of a rival's distance to the best, corrected for the number of rivals; None for
        the best itself and for results that were not tested."""
        row = self.row(result)
        return None if row is None or row == min(self.rivals, default=None) else self.corrected.get(row)

    @property
    def pairs(self) -> int:
        """Number of pairs of rivals."""
        return len(self.rivals) * (len(self.rivals) - 1) // 2

    @functools.cached_property
    def seeds(self) -> list[int]:
        """Number of seeds of each rival."""
        return [len(self.outcomes[row]) for row in sorted(self.rivals)]

    @property
    def doubt(self) -> str:
        """Half a sentence on what forbids a verdict: rivals with too few seeds, or untested ones
        that are as good; empty if nothing does."""
        enough = significance.FEWEST_SEEDS
        few = sum(seeds < enough for seeds in self.seeds)
        if not few:
            return f"not tested, but no worse than the best: {self.unbeaten}" if self.unbeaten else ""
        if max(self.seeds) == 1:
            return "one seed: unknown whether another would keep the order"
        counted = f"{few} of {len(self.seeds)} results with fewer than {enough} seeds"
        if set(self.seeds) == {2}:
            counted = "two seeds"
        return f"{counted}: unknown whether others would keep the order"

    @property
    def leads(self) -> bool:
        """True if the lead of the best is more than chance: every other rival is told apart from
        it, and nothing forbids to say so."""
        return len(self.rivals) > 1 and len(self.tie_group) == 1 and not self.doubt


@functools.cache
def compare(board: Board, section: Section, task: str) -> Comparison | None:
    """Comparison of the results of one task in one section; None if no record there has outcomes.

    It is limited to the results on the same test data
    (:meth:`~harness.leaderboard.board.Board.on_same_test`). A damaged file of outcomes becomes a
    notice of the board.
    """
    metric = board.main_metric(task)
    results: Pairs = []
    outcomes: list[list[Outcomes]] = []
    for architecture, result in board.on_same_test(section, task):
        if seeds := _outcomes(board, metric, result, outcomes[0][0].units if outcomes else None):
            results.append((architecture, result))
            outcomes.append(seeds)
    if not results:
        return None
    rivals, group = {result for _, result in board.rivals(section, task, metric)}, board.group(section, task)
    together = [number for number, (_, result) in enumerate(results) if result in rivals]
    estimates = significance.estimate([_arrays(seeds) for seeds in outcomes], _clusters(outcomes), together=together)
    info, scores = display_info(metric), estimates.scores.tolist()
    order = sorted(range(len(results)), key=lambda i: (-info.quality(scores[i]), results[i][0], results[i][1].settings))
    results, outcomes = [results[i] for i in order], [outcomes[i] for i in order]
    p, bounds = estimates.p_values()[np.ix_(order, order)], estimates.intervals()[order]
    above = [group is not None and not board.reaches_floor(group, metric, each) for each in bounds.tolist()]
    rows = [i for i, (_, result) in enumerate(results) if result in rivals and above[i]]
    untested = rivals - {result for _, result in results}
    best = info.quality(scores[order[rows[0]]]) if rows else -math.inf
    among = p[np.ix_(rows, rows)]
    corrected = dict(zip(rows, significance.against_the_best(among), strict=True))
    return Comparison(
        metric,
        results,
        outcomes,
        outcomes[0][0].units,
        estimates.scores[order],
        bounds,
        p,
        estimates.margins()[np.ix_(order, order)],
        frozenset(rows),
        corrected,
        frozenset(row for row, value in corrected.items() if value > significance.ALPHA),
        significance.pairs_told_apart(among),
        len(untested),
        sum(_quality(metric, result) >= best for result in untested),
    )


def p_beside_first(board: Board, metric: str, results: Sequence[Result]) -> list[float | None]:
    """Two-sided p-values of the differences between the first result and each of the others,
    corrected by Holm for those that are tested; None for one without outcomes of the same test
    units. The results may be of several groups that an axis joins
    (:func:`harness.records.groups.along`)."""
    first = _outcomes(board, metric, results[0], None)
    units = first[0].units if first else None
    others = [_outcomes(board, metric, result, units) if first else [] for result in results[1:]]
    tested = [first, *filter(None, others)]
    if len(tested) < 2:
        return [None] * len(others)
    p = significance.estimate([_arrays(seeds) for seeds in tested], _clusters(tested)).p_values()[0, 1:].tolist()
    corrected = iter(significance.holm(p))
    return [next(corrected) if seeds else None for seeds in others]


def _quality(metric: str, result: Result) -> float:
    """Mean score of a comparable result, with its sign such that more is better."""
    summary = result.summary(metric)
    assert summary
    return display_info(metric).quality(summary.mean)


def _arrays(seeds: list[Outcomes]) -> tuple[np.ndarray, np.ndarray]:
    """Numerators and denominators of a result, both (seeds, units)."""
    return np.stack([seed.numerators for seed in seeds]), np.stack([seed.denominators for seed in seeds])


def _clusters(outcomes: list[list[Outcomes]]) -> np.ndarray | None:
    """Number of the cluster of each unit, as far as any file says it: all are of the same test
    data."""
    known = next((seed.clusters for seeds in outcomes for seed in seeds if seed.clusters), None)
    return None if known is None else np.array(known)


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
