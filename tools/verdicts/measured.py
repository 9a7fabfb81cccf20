"""Distances between the rows of a results folder, which made-up boards follow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from harness.leaderboard import significance
from harness.leaderboard.board import read
from harness.leaderboard.comparison import compare
from harness.leaderboard.significance import Outcomes, estimate
from tools.verdicts.boards import SEEDS, Spread


def measure(results: Path) -> dict[str, Spread]:
    """Spread of each task's rows with :data:`SEEDS` seeds or more that are not all the same, among
    those that may be ranked; tasks with one such row are left out."""
    board = read(results)
    found: dict[str, Spread] = {}
    for section in board.sections:
        for task in board.recorded_tasks:
            compared = compare(board, section, task)
            if compared is None:
                continue
            rows = [
                (np.stack([seed.numerators for seed in seeds]), np.stack([seed.denominators for seed in seeds]))
                for number, seeds in enumerate(compared.outcomes)
                if len(seeds) >= SEEDS and number in compared.rivals
            ]
            units = np.arange(len(compared.units))
            rows = [row for row in rows if not significance.spread(*row, units).steady]
            if len(rows) > 1:
                found["/".join([*section.words, task])] = _measured(rows, len(units))
    return found


def _measured(rows: Sequence[Outcomes], units: int) -> Spread:
    spreads = [significance.spread(*row, np.arange(units)) for row in rows]
    between = np.array([row.between for row in spreads])
    of_clusters = estimate(rows).of_clusters
    own = np.diag(of_clusters) - [row.chance / row.seeds for row in spreads]
    pairs = (own[:, None] + own - 2 * of_clusters)[np.triu_indices(len(rows), 1)]
    # Variance of a unit's outcome, and the share of right answers that has it.
    variance = units * float(np.mean(own + [row.chance for row in spreads]))
    return Spread(
        units,
        0.5 + math.sqrt(max(0.0, 0.25 - variance)),
        math.sqrt(between.mean()),
        math.sqrt(np.mean([row.chance for row in spreads])),
        math.sqrt(max(0.0, float(pairs.mean()))),
        float(np.std([row.score for row in spreads], ddof=1)),
        tuple(np.sqrt(between / between.mean()).tolist()),
    )
