"""Shares of boards about which a test is wrong, and of true leads that it finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.leaderboard.significance import ALPHA, against_the_best, holm
from tools.verdicts.boards import Spread, outcomes, true_scores
from tools.verdicts.judges import TESTS, Board


@dataclass(frozen=True)
class Count:
    """Boards judged by one test: how many there were; ``alone``, a first place was called real;
    ``behind``, some row was said to be behind the best; ``holm``, the same by Holm's own count;
    ``found``, the first place of the truly best was called real; ``covered``, the share of
    intervals that hold the true score."""

    boards: int
    alone: int
    behind: int
    holm: int
    found: int
    covered: float


def simulate(
    spread: Spread, kind: str, systems: int, tests: Sequence[str], boards: int, seed: int = 0
) -> dict[str, Count]:
    """Counts by test, over the same boards."""
    draw = np.random.default_rng(seed)
    sums = {name: np.zeros(5) for name in tests}
    for _ in range(boards):
        true = true_scores(spread, kind, systems, draw)
        board = Board(*outcomes(spread, true, draw), spread)
        best = int(np.argmax([numerators.sum() for numerators, _ in board.rows]))
        order = [best, *(i for i in range(systems) if i != best)]
        for name in tests:
            p, intervals = TESTS[name](board)
            p = p[np.ix_(order, order)]
            behind = np.array(against_the_best(p))[1:] <= ALPHA
            covered = (intervals[:, 0] <= true) & (true <= intervals[:, 1])
            sums[name] += (
                behind.all(),
                behind.any(),
                min(holm(p[0, 1:].tolist())) <= ALPHA,
                behind.all() and best == 0,
                covered.mean(),
            )
    return {
        name: Count(boards, *(int(value) for value in values[:4]), float(values[4]) / boards)
        for name, values in sums.items()
    }
