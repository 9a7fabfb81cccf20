"""What saved predictions say beyond a score: intervals, paired tests and tie groups of one task in one section."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from harness.leaderboard.board import Board, Result, Section
from harness.outcomes import Outcomes


@dataclass(frozen=True)
class Evidence:
    """The results of one section's task whose records have outcomes, best first, and the statistics over their test units.

    ``outcomes`` holds those of every seed of a result, ``intervals`` (rows, 2) the 95 % bootstrap interval of its score over test units
    (seeds averaged), ``p`` (rows, rows) the two-sided p-value of a paired randomisation test for every pair, not corrected, and
    ``tied`` the rows that share the first place: the best of those trained on the largest training set, and those that differ from it
    by no more than chance after Holm's correction. Scores are fractions (WER too).
    """

    metric: str
    results: list[tuple[str, Result]]
    outcomes: list[list[Outcomes]]
    units: list[str]
    scores: np.ndarray
    intervals: np.ndarray
    p: np.ndarray
    tied: frozenset[int]

    def row(self, result: Result) -> int | None:
        """Where a result stands here; None when its records have no outcomes."""
        raise NotImplementedError


@functools.cache
def evidence(board: Board, section: Section, task: str) -> Evidence | None:
    """The evidence of one task in one section; None when no record there has outcomes."""
    raise NotImplementedError
