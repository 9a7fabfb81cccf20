"""Tests of which row of a board is better: the one that was chosen, and those that it was chosen
among."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from harness.leaderboard.significance import WEIGHT, Estimates, Outcomes, estimate
from tools.verdicts.boards import SEEDS, Spread


class Board(NamedTuple):
    """A board as a test sees it: the outcomes of each system, and the cluster of each unit. What
    it was made of is for :func:`known_variances` alone."""

    rows: Sequence[Outcomes]
    clusters: np.ndarray | None
    spread: Spread


class Judged(NamedTuple):
    """P-values (rows, rows) of a test, and its intervals (rows, 2)."""

    p: np.ndarray
    intervals: np.ndarray


Test = Callable[[Board], Judged]


def judged(found: Estimates) -> Judged:
    """The p-values and intervals of estimates."""
    return Judged(found.p_values(), found.intervals())


def weighing(weight: float) -> Test:
    """Seeds and clusters, with this weight of the whole board."""
    return lambda board: judged(estimate(board.rows, board.clusters, weight))


def blind_for_clusters(board: Board) -> Judged:
    """The chosen test, each unit for itself."""
    return judged(estimate(board.rows))


def examples_alone(board: Board) -> Judged:
    """Units alone: what the leaderboard tested before, without its draws."""
    none = np.zeros(len(board.rows))
    return judged(replace(estimate(board.rows), of_seeds=none, of_chance=none))


def seeds_alone(board: Board) -> Judged:
    """The scores of seeds alone, each row with its own deviation."""
    none = np.zeros((len(board.rows), len(board.rows)))
    return judged(replace(estimate(board.rows, board.clusters, 0.0), of_clusters=none))


def known_variances(board: Board) -> Judged:
    """The variances that the boards were made with, where all systems have the same: no test can
    find more."""
    spread, rows = board.spread, len(board.rows)
    of_chance = np.full(rows, spread.chance**2 / SEEDS)
    of_clusters = np.diag(of_chance + spread.pair**2 / 2)
    of_seeds = np.full(rows, spread.seeds**2 / SEEDS)
    found = replace(estimate(board.rows), of_seeds=of_seeds, of_chance=of_chance, of_clusters=of_clusters)
    return judged(replace(found, weight=1e9, all_df=1e9, cluster_df=1e9))


def two_level_bootstrap(board: Board) -> Judged:
    """Seeds of each row and units of all drawn with replacement, 500 times; percentiles of the
    scores and of the differences."""
    draws, draw = 500, np.random.default_rng(0)
    right = np.stack([numerators for numerators, _ in board.rows])
    systems, seeds, units = right.shape
    of_units = np.stack([np.bincount(draw.integers(0, units, units), minlength=units) for _ in range(draws)]) / units
    scores = np.einsum("isu,du->dis", right, of_units, optimize=True)
    means = np.take_along_axis(scores, draw.integers(0, seeds, (draws, systems, seeds)), 2).mean(2)
    differences = means[:, :, None] - means[:, None]
    p = 2 * np.minimum((differences <= 0).mean(0), (differences >= 0).mean(0))
    return Judged(np.clip(p, 1 / draws, 1.0), np.quantile(means, [0.025, 0.975], axis=0).T)


CHOSEN = "**seeds and clusters**"
OWN = "each row its own deviation"
ONE = "one deviation for all rows"
BLIND = "seeds and units, no clusters"
BOOTSTRAP = "two-level bootstrap"
KNOWN = "known variances"
TESTS: dict[str, Test] = {
    CHOSEN: weighing(WEIGHT),
    "examples alone": examples_alone,
    "seeds alone": seeds_alone,
    OWN: weighing(0.0),
    ONE: weighing(1e6),
    BLIND: blind_for_clusters,
    BOOTSTRAP: two_level_bootstrap,
    KNOWN: known_variances,
}
