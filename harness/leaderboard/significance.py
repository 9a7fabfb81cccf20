"""Intervals of scores, and tests of differences between scores.

A score is a ratio of sums over test units (:mod:`harness.records.outcomes`), its seeds averaged. It
would be another with other seeds, and on other texts. Both errors are estimated from the outcomes
of seeds x clusters, the two crossed factors of an analysis of variance; a cluster is a group of
dependent units, such as the questions of one story. The variance of a difference has three parts:
the seeds of the one row, the seeds of the other, and the clusters that both were tested on.

Three seeds say little of their own deviation. Each row's is therefore drawn towards that of the
whole board, which counts as :data:`WEIGHT` further degrees of freedom (Smyth 2004). The statistic
is compared with Student's t, its degrees of freedom after Welch (1947). Nothing is drawn at random:
the same outcomes give the same verdict. ``tools/verdicts/`` has the simulation by which the test
was chosen, ``results/verdicts.md`` its figures.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy  # its parts load when they are first asked for

ALPHA = 0.05
"""Largest corrected p of a difference that is told apart."""
FEWEST_SEEDS = 3
"""Seeds of each row from which a lead can be called more than chance: two give one difference."""
WEIGHT = 8.0
"""Degrees of freedom that the seeds of the whole board count beside the row's own (with three
seeds: two). Chosen by simulation: with less, large boards tell too little apart; with more, rows
with unsteady seeds are told apart that are equal."""
UNSTEADY = 5.0
"""A row counts for the board with at most this many times the typical variance between seeds, so
that one run that failed to learn does not make all others look unsteady."""
LUCK = 2.0
"""The variance between seeds is taken to be at least this many times what luck with the units of
the test explains. On each task of the first records it was 3 to 19 times; a smaller one is an
accident of three seeds, of which false verdicts come."""
SMALLEST_P = 1e-6
"""No smaller p is given: nobody knows the tails of three seeds further out."""


# --- errors of scores ---


class Spread(NamedTuple):
    """The score of one row, and how its parts differ.

    ``score`` is the mean of those of its seeds. ``by_cluster`` (clusters,) is what each cluster
    adds to it; it sums to zero. ``seeds`` is their number, ``between`` the variance of the score of
    a single seed. ``chance`` is the part of ``between`` that a seed owes to the clusters of this
    very test: another seed is right on others of them. Both are 0 for a single seed, and where all
    seeds give the same outcomes (``steady``), as those of a method without random numbers do.
    """

    score: float
    by_cluster: np.ndarray
    seeds: int
    between: float
    chance: float
    steady: bool


def spread(numerators: np.ndarray, denominators: np.ndarray, clusters: np.ndarray) -> Spread:
    """Score and spread of a row from its outcomes (seeds, units); ``clusters`` (units,) holds the
    number of each unit's cluster, from 0."""
    seeds, groups = len(numerators), int(clusters.max()) + 1
    below = denominators.sum(1, keepdims=True)
    below = np.where(below == 0, 1.0, below)  # a test without anything to find: score 0
    of_seed = numerators.sum(1, keepdims=True) / below
    added = (numerators - of_seed * denominators) / below
    by_cluster = np.stack([np.bincount(clusters, row, groups) for row in added])
    steady = seeds > 1 and not np.ptp(numerators, axis=0).any() and not np.ptp(denominators, axis=0).any()
    score, means = float(of_seed.mean()), by_cluster.mean(0)
    if seeds == 1 or steady:
        return Spread(score, means, seeds, 0.0, 0.0, steady)
    rest = by_cluster - means
    chance = groups * float((rest**2).sum()) / ((seeds - 1) * max(1, groups - 1))
    return Spread(score, means, seeds, float(of_seed.var(ddof=1)), chance, steady)


@dataclass(frozen=True)
class Estimates:
    """Scores of the rows of one board, and the variances of their errors.

    ``of_seeds`` (rows,) is the variance of a score over other seeds, and ``of_chance`` the part of
    it that ``of_clusters`` holds too. ``of_clusters`` (rows, rows) is the covariance of the scores
    over other clusters. ``df`` (rows,) are the degrees of freedom that a row's seeds have for
    themselves, ``all_df`` those of the whole board, ``cluster_df`` the number of clusters less one.
    ``differing`` (rows, rows) is the number of units that came out otherwise, ``bounds`` the lowest
    and the highest score of a single unit.
    """

    scores: np.ndarray
    of_seeds: np.ndarray
    of_chance: np.ndarray
    of_clusters: np.ndarray
    df: np.ndarray
    all_df: float
    cluster_df: float
    weight: float
    differing: np.ndarray
    bounds: tuple[float, float]

    def intervals(self, level: float = 0.95) -> np.ndarray:
        """Interval (rows, 2) of each score, over other seeds and other clusters. It goes no further
        than the scores of single units do."""
        clusters = np.maximum(0, np.diag(self.of_clusters) - self.of_chance)
        variance, df = self._variance(self.of_seeds, self.df, clusters)
        margin = scipy.special.stdtrit(df, (1 + level) / 2) * np.sqrt(variance)
        return np.clip(np.stack([self.scores - margin, self.scores + margin], 1), *self.bounds)

    def p_values(self) -> np.ndarray:
        """Two-sided p (rows, rows) of every difference, not corrected; 1 on the diagonal."""
        variance, df = self._of_differences()
        difference = np.abs(self.scores[:, None] - self.scores)
        differs = difference > 1e-12
        t = np.divide(difference, np.sqrt(variance), out=np.full(variance.shape, np.inf), where=variance > 0)
        # n units that all point one way have probability 2^(1 - n): no test of them can say more.
        smallest = np.maximum(SMALLEST_P, 2.0 ** np.minimum(0, 1 - self.differing))
        return np.where(differs, np.maximum(2 * scipy.special.stdtr(df, -t), smallest), 1.0)

    def margins(self, level: float = 0.95) -> np.ndarray:
        """Half the width (rows, rows) of the interval of every difference, by the same estimate as
        its p."""
        variance, df = self._of_differences()
        return np.asarray(scipy.special.stdtrit(df, (1 + level) / 2) * np.sqrt(variance))

    def _of_differences(self) -> tuple[np.ndarray, np.ndarray]:
        """Variance (rows, rows) of every difference, and its degrees of freedom."""
        own = np.diag(self.of_clusters)
        clusters = own[:, None] + own - 2 * self.of_clusters - self.of_chance[:, None] - self.of_chance
        of_seeds = self.of_seeds[:, None] + self.of_seeds
        return self._variance(of_seeds, self.df[:, None] + self.df, np.maximum(0, clusters))

    def _variance(self, of_seeds: np.ndarray, df: np.ndarray, clusters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sum of both variances, and its degrees of freedom."""
        variance = of_seeds + clusters
        seed_df = np.minimum(self.weight + df, self.all_df)
        two = np.where(seed_df < 4, 0.0, 2.0)  # the second order of Welch's formula is none for fewer
        doubt = of_seeds**2 / (seed_df + two) + clusters**2 / (self.cluster_df + two)
        welch = np.divide(variance**2, doubt, out=two + 1, where=doubt > 0) - two
        return variance, np.maximum(1.0, welch)


Outcomes = tuple[np.ndarray, np.ndarray]
"""Numerators and denominators of a row, both (seeds, units)."""


def estimate(
    rows: Sequence[Outcomes],
    clusters: np.ndarray | None = None,
    weight: float = WEIGHT,
    together: Collection[int] | None = None,
) -> Estimates:
    """Scores of the rows of a board and the variances of their errors. ``clusters`` (units,) holds
    the number of each unit's cluster; without them, or where all units are in one, each unit is its
    own. ``together`` are the rows whose seeds tell how steady the board is, all if it is None:
    those of another budget, and floors, say nothing of it."""
    units = rows[0][0].shape[1]
    if clusters is None or not np.ptp(clusters):
        clusters = np.arange(units)
    spreads = [spread(numerators, denominators, clusters) for numerators, denominators in rows]
    seeds = np.array([row.seeds for row in spreads])
    steady = np.array([row.steady for row in spreads])
    between, chance = (np.array([getattr(row, name) for row in spreads]) for name in ("between", "chance"))
    df = np.where(steady, 0, seeds - 1)
    of_board = df if together is None else np.where(np.isin(np.arange(len(rows)), list(together)), df, 0)
    if not of_board.any():  # one seed of each: others are better than none
        of_board = df
    pooled = _pooled(between, of_board)
    of_seed = np.divide(
        weight * pooled + df * between, weight + df, out=np.full(len(rows), pooled), where=weight + df > 0
    )
    of_seed = np.where(steady, 0.0, np.maximum(of_seed, LUCK * chance))
    by_cluster = np.stack([row.by_cluster for row in spreads])
    groups = by_cluster.shape[1]
    return Estimates(
        np.array([row.score for row in spreads]),
        of_seed / seeds,
        chance / seeds,
        by_cluster @ by_cluster.T * (groups / max(1, groups - 1)),
        df,
        max(1.0, float(of_board.sum())),
        max(1.0, groups - 1.0),
        weight,
        _differing(rows),
        _bounds(rows),
    )


def _pooled(between: np.ndarray, df: np.ndarray) -> float:
    """Mean of the variances between seeds, each with its degrees of freedom; 0 where no row has
    any. No row counts for more than :data:`UNSTEADY` times the typical variance, which the median
    tells."""
    between, df = between[df > 0], df[df > 0]
    if not len(df):
        return 0.0
    typical = float(np.median(between * df / scipy.special.chdtri(df, 0.5)))
    return float(np.average(np.minimum(between, UNSTEADY * typical), weights=df))


def _differing(rows: Sequence[Outcomes]) -> np.ndarray:
    """Number of units (rows, rows) of which two rows have other outcomes, seeds averaged."""
    above, below = (np.stack([row[part].mean(0) for row in rows]) for part in (0, 1))
    shared = not np.ptp(below, axis=0).any()  # for most metrics: half of the work
    return np.stack(
        [
            np.count_nonzero((above != above[i]) if shared else (above != above[i]) | (below != below[i]), axis=1)
            for i in range(len(rows))
        ]
    )


def _bounds(rows: Sequence[Outcomes]) -> tuple[float, float]:
    """Lowest and highest score of a single unit."""
    rates = [
        numerators[some] / denominators[some] for numerators, denominators in rows if (some := denominators > 0).any()
    ]
    return (min(map(np.min, rates)), max(map(np.max, rates))) if rates else (0.0, 0.0)


# --- verdicts ---


def holm(p: Sequence[float]) -> list[float]:
    """P-values corrected for the number of comparisons, so that they bound the probability of any
    false alarm (Holm 1979).

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    return _step_down(p, range(1, len(p) + 1))


def against_the_best(p: np.ndarray) -> list[float]:
    """Corrected p-values of the differences between the first row, the best, and each of the
    others; 1 for itself. ``p`` (rows, rows) is not corrected.

    The steps are Holm's, the smallest p first. Of n rows that are left, the best included, Holm
    counts n - 1 comparisons. But the best was picked after looking, and any of the n could have
    been it: n (n - 1) / 2 pairs are counted here. By Holm's own count, some row of 40 equal ones is
    called worse than the best on many boards (``results/verdicts.md``).

    Where every p is small enough by itself, all the others are behind: the lead over all of them at
    once is false only if it is false of one, so it needs no correction (Berger 1982).
    """
    others = p[0, 1:].tolist() if len(p) else []
    corrected = _step_down(others, [(n + 1) * n / 2 for n in range(1, len(others) + 1)])
    largest = max(others, default=1.0)
    return [1.0, *(min(value, largest) for value in corrected)][: len(p)]


def _step_down(p: Sequence[float], comparisons: Sequence[float]) -> list[float]:
    """Each p times the number of comparisons, by how many p-values are left, and never less than
    the one before; the smallest p comes first."""
    corrected = [0.0] * len(p)
    largest = 0.0
    for rank, i in enumerate(sorted(range(len(p)), key=p.__getitem__)):
        largest = max(largest, min(1.0, comparisons[len(p) - rank - 1] * p[i]))
        corrected[i] = largest
    return corrected


def pairs_told_apart(p: np.ndarray, alpha: float = ALPHA) -> int:
    """Number of pairs of rows that differ after Holm's correction over all pairs."""
    return sum(value <= alpha for value in holm(p[np.triu_indices(len(p), 1)].tolist()))
