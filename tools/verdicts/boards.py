"""Boards of systems whose true scores are known, and whose seeds and test units differ as those of
the records do."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from harness.leaderboard.significance import Outcomes

SEEDS = 3
LEAD = 3.0
"""Distance of a true lead, in deviations between seeds."""


@dataclass(frozen=True)
class Spread:
    """Scores of a task's rows, and how far they are apart, as measured on records.

    ``right`` is the score of the systems on the board. ``seeds`` is the standard deviation between
    single seeds of a row; ``chance`` the part of it that comes of a seed's being right on other
    units of the test (the rest it would have on any test); ``pair`` the standard error of the
    difference between two rows that comes of the units, with however many seeds; ``rows`` the
    standard deviation between rows. ``deviations`` are those of single rows, relative to ``seeds``:
    each system of a board has one of them, or all have ``seeds`` where there are none. With
    ``clusters`` the units stand in as many groups, whose units share half of what makes a row good
    at a unit.
    """

    units: int
    right: float
    seeds: float
    chance: float
    pair: float
    rows: float
    deviations: tuple[float, ...] = ()
    clusters: int = 0

    @cached_property
    def correlations(self) -> tuple[float, float]:
        """Correlation at a unit between two seeds of one row and between two rows, on a scale where
        an outcome is right from a threshold on."""
        p = self.right
        within = p * (1 - p) - self.chance**2 * self.units  # covariance of two seeds' outcomes
        across = within - self.pair**2 * self.units / 2
        return _correlation(p, within), _correlation(p, across)


def _correlation(p: float, covariance: float) -> float:
    """Correlation of two normal variables that are both below the ``p`` quantile so often that the
    two events have this covariance."""
    points, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()

    def excess(r: float) -> float:
        return float(weights @ ndtr((ndtri(p) + math.sqrt(r) * points) / math.sqrt(1 - r)) ** 2 - p * p - covariance)

    return brentq(excess, 0.0, 0.995)


SST2 = Spread(
    1821, 0.798, 0.01128, 0.00611, 0.00437, 0.0238,
    (0.76, 0.96, 0.05, 0.41, 0.80, 0.46, 1.14, 1.06, 0.44, 0.35, 1.18, 1.12, 0.88, 0.71, 0.66, 1.03, 0.89, 2.72, 0.99,
     0.64, 1.29, 0.20, 0.85, 1.09, 1.09, 0.48, 0.73, 1.03, 1.62, 1.07, 0.59),
)  # fmt: skip
WIKIQA = Spread(
    243, 0.850, 0.02298, 0.01259, 0.01281, 0.0247,
    (0.29, 0.11, 0.52, 0.56, 0.58, 1.83, 0.14, 0.25, 0.72, 0.46, 0.57, 0.80, 0.41, 1.03, 0.60, 0.53, 0.74, 0.59, 1.50,
     0.88, 0.61, 1.20, 3.16, 0.52),
)  # fmt: skip
NER = Spread(3453, 0.815, 0.00852, 0.00314, 0.00390, 0.0675, (0.32, 0.40, 0.08, 0.36, 2.28, 0.65))
BABI = Spread(20000, 0.794, 0.00830, 0.00189, 0.00102, 0.0029)
"""Records of commit 63838a8 with three seeds and the largest training set of their task, whose
seeds differ: 31, 24, 6 and 2 rows. Scores that are no shares of right answers (average precision,
F1) are made up as right answers with the variance that their units have."""


def outcomes(spread: Spread, true: np.ndarray, draw: np.random.Generator) -> tuple[list[Outcomes], np.ndarray | None]:
    """Outcomes of systems with these true scores, and the cluster of each unit."""
    within, across = spread.correlations
    systems, units = len(true), spread.units
    deviations = draw.choice(spread.deviations, systems) if spread.deviations else np.ones(systems)
    of_seed = np.sqrt(np.maximum(0, (deviations * spread.seeds) ** 2 - spread.chance**2))
    scores = true[:, None] + of_seed[:, None] * draw.standard_normal((systems, SEEDS))
    clusters = np.arange(units) * spread.clusters // units if spread.clusters else None
    of_unit = draw.standard_normal((systems, units), np.float32)
    if clusters is not None:
        shared = draw.standard_normal((systems, spread.clusters), np.float32)
        of_unit = math.sqrt(0.5) * (of_unit + shared[:, clusters])
    known = math.sqrt(across) * draw.standard_normal(units, np.float32) + math.sqrt(within - across) * of_unit
    luck = draw.standard_normal((systems, SEEDS, units), np.float32)
    luck *= np.float32(math.sqrt(1 - within))
    luck += known[:, None]
    right = luck < ndtri(np.clip(scores, 1e-9, 1 - 1e-9)).astype(np.float32)[:, :, None]
    one = np.ones((SEEDS, units))
    return [(row.astype(float), one) for row in right], clusters


EQUAL, LED, LED_BY_ONE = "equal", "led", "led by one"


def true_scores(spread: Spread, kind: str, systems: int, draw: np.random.Generator) -> np.ndarray:
    """True scores of the systems of a board: all the same; or the first :data:`LEAD` deviations
    above the second, and the others below that, as far apart as the rows of the records; or the
    first so far above all the others, which are the same."""
    scores = np.full(systems, spread.right)
    if kind != EQUAL:
        scores[0] += LEAD * spread.seeds
    if kind == LED:
        others = spread.rows * draw.standard_normal(systems - 1)
        scores[1:] = np.maximum(scores[1:] + others - others.max(), 0.02)
    return scores
