"""Means over seeds, intervals of scores, and tests of differences between scores.

Scores are ratios of sums over test units (:mod:`harness.records.outcomes`): row r scores
``numerators[r].sum() / denominators[r].sum()``, its seeds averaged unit by unit. Intervals and
tests are over the test units alone: they hold for the same models on other texts, not for other
seeds.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import math
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

RESAMPLES = 2_000
PERMUTATIONS = 2_000
"""Smallest number of permutations. There are at least 40 per row, so that the smallest possible p
passes Holm's correction."""
BLOCK = 4_000_000
"""Largest number of random numbers held in memory at a time."""


@dataclass(frozen=True)
class Summary:
    """Mean of ``n`` values and their sample standard deviation (divisor n - 1); None for a single
    value."""

    mean: float
    sd: float | None
    n: int


def summarise(values: Sequence[float]) -> Summary:
    """Mean, standard deviation and number of ``values``, independent of their order; raises
    ``ValueError`` if there are none."""
    n = len(values)
    if n == 0:
        raise ValueError("no values to summarise")
    mean = math.fsum(values) / n
    sd = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1)) if n > 1 else None
    return Summary(mean, sd, n)


def leaders(values: Sequence[float], *, lower_is_better: bool, digits: int) -> set[int]:
    """Positions of the best of ``values``; several if equal after rounding to ``digits``, as a
    table shows them."""
    rounded = [round(value, digits) for value in values]
    best = (min if lower_is_better else max)(rounded, default=None)
    return {i for i, value in enumerate(rounded) if value == best}


def intervals(numerators: np.ndarray, denominators: np.ndarray, level: float = 0.95, seed: int = 0) -> np.ndarray:
    """Bootstrap percentile interval (rows, 2) of each row's score, over draws of the test units
    (columns) with replacement.

    All rows share the draws. Source: Efron 1979; Koehn 2004 for scores over a corpus.
    """
    units = numerators.shape[1]
    generator = np.random.default_rng(seed)
    scores = []
    for size in _blocks(RESAMPLES, units):
        draws = generator.integers(0, units, (size, units))
        weights = np.stack([np.bincount(row, minlength=units) for row in draws]).astype(float)
        scores.append(_ratio(weights @ numerators.T, weights @ denominators.T))
    return np.quantile(np.concatenate(scores), [(1 - level) / 2, (1 + level) / 2], axis=0).T


def paired_p(numerators: np.ndarray, denominators: np.ndarray, seed: int = 0) -> np.ndarray:
    """Two-sided p-value (rows, rows) of every pair of rows by approximate randomisation, not
    corrected; 1 on the diagonal.

    Under the null hypothesis the two outcomes of a unit are exchangeable. A permutation exchanges
    those of each unit with probability 1/2, :data:`PERMUTATIONS` times or more. p is the share of
    permutations, the identity included, whose scores differ by as much as the observed ones.
    Source: Noreen 1989; Yeh 2000.
    """
    rows, units = numerators.shape
    permutations = max(PERMUTATIONS, 40 * rows)
    generator = np.random.default_rng(seed)
    shared = bool((denominators == denominators[0]).all())  # for most metrics: half of the work
    # Exchanging unit u adds s_u (a_u - b_u) / 2 to the mean of both sums, s_u = 1 or -1: linear, so
    # one product serves all pairs.
    above, below = [], []
    for size in _blocks(permutations, units):
        signs = np.unpackbits(np.frombuffer(generator.bytes(-(-size * units // 8)), np.uint8), count=size * units)
        signs = 2.0 * signs.reshape(size, units) - 1.0
        above.append(signs @ numerators.T)
        below.append(signs @ denominators.T if not shared else np.repeat(signs @ denominators[:1].T, rows, axis=1))
    signed_n, signed_d = np.concatenate(above).T, np.concatenate(below).T  # (rows, permutations)
    n, d = numerators.sum(1), denominators.sum(1)
    p = np.ones((rows, rows))
    for i in range(rows - 1):
        others = slice(i + 1, rows)
        mean_n, mean_d = (n[i] + n[others, None]) / 2, (d[i] + d[others, None]) / 2
        change_n, change_d = (signed_n[i] - signed_n[others]) / 2, (signed_d[i] - signed_d[others]) / 2
        differences = _ratio(mean_n + change_n, mean_d + change_d) - _ratio(mean_n - change_n, mean_d - change_d)
        observed = np.abs(_ratio(n[i], d[i]) - _ratio(n[others], d[others]))[:, None]
        as_large = (np.abs(differences) >= observed - 1e-12).sum(1)
        p[i, others] = p[others, i] = (as_large + 1) / (permutations + 1)
    return p


def _blocks(draws: int, units: int) -> list[int]:
    """Sizes of the blocks that the draws are made in."""
    size = max(1, min(draws, BLOCK // max(1, units)))
    return [min(size, draws - start) for start in range(0, draws, size)]


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Elementwise quotient; 0 where the denominator is 0."""
    return np.divide(above, below, out=np.zeros(np.broadcast(above, below).shape), where=below != 0)


def holm(p: Sequence[float]) -> list[float]:
    """P-values corrected for the number of comparisons, so that they bound the probability of any
    false alarm (Holm 1979)."""
    corrected = [0.0] * len(p)
    largest = 0.0
    for rank, i in enumerate(sorted(range(len(p)), key=p.__getitem__)):
        largest = max(largest, min(1.0, (len(p) - rank) * p[i]))
        corrected[i] = largest
    return corrected


def tie_group(scores: Sequence[float], p: np.ndarray, *, lower_is_better: bool, alpha: float = 0.05) -> set[int]:
    """The best row and the rows that do not differ from it at level ``alpha``, after Holm's
    correction over all the others."""
    if not len(scores):
        return set()
    best = (min if lower_is_better else max)(range(len(scores)), key=scores.__getitem__)
    others = [i for i in range(len(scores)) if i != best]
    corrected = holm([p[best, i] for i in others])
    return {best, *(i for i, value in zip(others, corrected, strict=True) if value > alpha)}


@dataclass(frozen=True)
class Ranks:
    """Mean rank of each system over tasks, best first; two differ significantly if their ranks
    differ by more than ``cd``."""

    names: list[str]
    mean_ranks: list[float]
    cd: float
    p: float
    tasks: list[str]


def complete_block(
    scores: Mapping[str, Mapping[str, float]], fewest_tasks: int, fewest_systems: int
) -> tuple[list[str], list[str]]:
    """The systems and tasks of the largest block without a gap (most systems x tasks, then most
    tasks); both empty if there is none.

    ``scores`` holds each system's score by task. The set of tasks grows greedily, the most widely
    scored first, so that one task with few scores does not empty the block.
    """
    best: tuple[list[str], list[str]] = ([], [])
    tasks: list[str] = []
    systems = sorted(scores)
    remaining = sorted({task for by_task in scores.values() for task in by_task})
    while remaining:
        task = max(remaining, key=lambda t: (sum(t in scores[s] for s in systems), t))
        remaining.remove(task)
        tasks.append(task)
        systems = [s for s in systems if task in scores[s]]
        if (
            len(tasks) >= fewest_tasks
            and len(systems) >= fewest_systems
            and len(systems) * len(tasks) >= len(best[0]) * len(best[1])
        ):
            best = (list(systems), list(tasks))
    return best


def critical_difference(scores: Mapping[str, Mapping[str, float]], lower_is_better: Collection[str]) -> Ranks | None:
    """Friedman's test and Nemenyi's critical difference over the tasks that the systems share
    (Demsar 2006), by autorank.

    ``scores`` holds each system's score by task; ``lower_is_better`` names the tasks with error
    rates. None if fewer than 5 tasks or 3 systems have no gap (:func:`complete_block`), or autorank
    (extra ``stats``) is not installed.
    """
    systems, tasks = complete_block(scores, fewest_tasks=5, fewest_systems=3)
    if not systems or importlib.util.find_spec("autorank") is None:
        return None
    import pandas as pd
    from autorank import autorank

    table = pd.DataFrame(
        {s: [scores[s][t] * (-1 if t in lower_is_better else 1) for t in tasks] for s in systems}, index=tasks
    )
    with (
        contextlib.redirect_stdout(io.StringIO()),
        warnings.catch_warnings(),
    ):  # autorank prints its table and warns of equal scores
        warnings.simplefilter("ignore", RuntimeWarning)
        result = autorank(table, alpha=0.05, verbose=False, force_mode="nonparametric")
    ranks = result.rankdf["meanrank"].sort_values(kind="stable")
    return Ranks(list(ranks.index), [float(rank) for rank in ranks], float(result.cd), float(result.pvalue), tasks)
