"""The order of the architectures with more training: rank correlations between the amounts of
training, and between the tiers, of one task.

A small budget is worth its time if it puts architectures into the order that a larger one would.
Only orders are compared, never scores: those of two budgets say nothing of each other.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from scipy.special import ndtri

from harness.leaderboard.board import Board
from harness.metrics import display_info
from harness.records.groups import AMOUNT_OF_TRAINING, Group, without

FEWEST = 5
"""Architectures that two orders must share: the correlation of fewer is any number."""


class Agreement(NamedTuple):
    """The rank correlation of two groups of results over the ``shared`` architectures, with its
    95 % interval; no interval where the orders are the same or opposite."""

    first: Group
    second: Group
    shared: int
    correlation: float
    interval: tuple[float, float] | None


def agreements(board: Board, task: str) -> list[Agreement]:
    """The agreement of any two ranked groups of a task that differ in tier, data or amount of
    training alone, and share enough architectures."""
    metric = board.main_metric(task)
    qualities: dict[Group, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for section in filter(lambda section: section.ranked, board.sections):
        for architecture, result in board.results(section, task):
            summary = result.summary(metric)
            if result.group and summary and not board.is_floor(architecture):
                qualities[result.group][architecture].append(display_info(metric).quality(summary.mean))
    # Of several configurations of an architecture nobody knows which one answers to which.
    single = {group: {id: q for id, [q, *more] in rows.items() if not more} for group, rows in qualities.items()}
    pairs = itertools.combinations(single, 2)
    all_else = {group: without(group, AMOUNT_OF_TRAINING) for group in single}
    found = (_agreement(a, b, single[a], single[b]) for a, b in pairs if all_else[a] == all_else[b])
    return [agreement for agreement in found if agreement.shared >= FEWEST]


def _agreement(a: Group, b: Group, first: Mapping[str, float], second: Mapping[str, float]) -> Agreement:
    shared = [id for id in first if id in second]
    rho = rank_correlation([first[id] for id in shared], [second[id] for id in shared])
    return Agreement(a, b, len(shared), rho, interval(rho, len(shared)))


def rank_correlation(first: list[float], second: list[float]) -> float:
    """Spearman's rank correlation; 0 where one of the lists has no order."""
    from scipy.stats import spearmanr  # takes as long to load as a small leaderboard to build

    if len(first) < 2 or len(set(first)) == 1 or len(set(second)) == 1:
        return 0.0
    return round(float(spearmanr(first, second).statistic), 12)  # the same order is 1, not 0.9999...


def interval(rho: float, count: int) -> tuple[float, float] | None:
    """The 95 % interval of a rank correlation over ``count`` pairs, by Fisher's z with the variance
    of Bonett and Wright (2000, eq. 4); None where z is infinite or there are too few pairs."""
    if count <= 3 or abs(rho) == 1:
        return None
    margin = ndtri(0.975) * math.sqrt((1 + rho**2 / 2) / (count - 3))
    return math.tanh(math.atanh(rho) - margin), math.tanh(math.atanh(rho) + margin)
