"""Means and ranks of systems over several tasks."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import math
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from harness.errors import LeaderboardError

RANKED_TASKS, RANKED_SYSTEMS = 5, 3
"""Numbers of tasks and of systems from which on mean ranks are computed."""


def normalised_means(
    scores: Mapping[str, Mapping[str, float]],
    floors: Mapping[str, float],
    *,
    lower_is_better: Collection[str] = (),
) -> dict[str, float]:
    """Mean of each system's scores over tasks, each normalised to 0 at the floor of its task and 1
    at the best of these systems.

    ``scores`` holds each system's score by task, of the same tasks for all; ``floors`` the score of
    each task that needs no learning, ``lower_is_better`` the tasks with error rates. A system below
    the floor counts less than 0. :class:`~harness.errors.LeaderboardError` names what has no floor,
    or nobody above it.
    """
    tasks = sorted({task for by_task in scores.values() for task in by_task})
    if lacking := [task for task in tasks if task not in floors]:
        raise LeaderboardError(f"no mean over tasks, because no floor is known of {', '.join(lacking)}")
    shares: dict[str, list[float]] = {system: [] for system in scores}
    for task in tasks:
        sign = -1 if task in lower_is_better else 1
        above = {system: sign * (by_task[task] - floors[task]) for system, by_task in scores.items()}
        best = max(above.values())
        if best <= 0:
            raise LeaderboardError(f"no mean over tasks, because nobody is above the floor of {task}")
        for system, distance in above.items():
            shares[system].append(distance / best)
    return {system: math.fsum(values) / len(values) for system, values in shares.items()}


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
    rates. None if fewer than :data:`RANKED_TASKS` or :data:`RANKED_SYSTEMS` have no gap
    (:func:`complete_block`), or autorank (extra ``stats``) is not installed.
    """
    systems, tasks = complete_block(scores, RANKED_TASKS, RANKED_SYSTEMS)
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
