"""Scores by the number of training examples, and the number from which on an architecture beats
the best classical one."""

from __future__ import annotations

import functools
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from harness.leaderboard.board import Board
from harness.leaderboard.results import versioned
from harness.metrics import display_info
from harness.records import Record
from harness.records.groups import along

FEWEST = 3
"""Training sizes that a line must have."""


class Place(NamedTuple):
    """Tier, protocol and its version, which all lines of a table share."""

    tier: str
    protocol: str
    version: int

    @property
    def words(self) -> str:
        """Its parts in words."""
        return f"tier {self.tier}, protocol {versioned(self.protocol, self.version)}"

    def id(self, task: str) -> str:
        """HTML id of what shows a task's lines."""
        return f"sizes-{task}-{self.tier}-{self.protocol}-{self.version}"


Lines = dict[str, dict[int, float]]
"""By architecture: the mean test score over the seeds by the number of training examples."""


@functools.cache  # the table and the plot show the same ones
def lines(board: Board, task: str) -> dict[Place, Lines]:
    """The lines of a task's records that were trained on several numbers of examples and are equal
    in all else but the seed, in the order of the survey's tables. A point is the mean of the seeds
    that have it. Left out: floors, rows that see more than their training examples, and of the
    lines of one architecture (other settings) all but the longest."""
    metric = board.main_metric(task)
    ours = [r for r in board.records if r.task == task and not board.is_floor(r.architecture) and not r.sees]
    if len({record.counts.get("train") for record in ours}) < FEWEST:
        return {}
    found: dict[Place, Lines] = {}
    for run in sorted(along("examples", ours), key=lambda run: board.order(run[0].architecture)):
        points = _points(run, metric)
        if len(points) < FEWEST:
            continue
        first = run[0]
        of_place = found.setdefault(Place(first.tier, first.protocol, first.protocol_version or 1), {})
        if len(points) > len(of_place.get(first.architecture, ())):
            of_place[first.architecture] = points
    # Counting takes no passes, so classical rows have a line on every task; alone they say nothing.
    return {
        place: of_place
        for place, of_place in found.items()
        if not all(board.is_classical(architecture) for architecture in of_place)
    }


def _points(run: Sequence[Record], metric: str) -> dict[int, float]:
    """The mean score over seeds by the number of training examples."""
    scores: dict[int, list[float]] = defaultdict(list)
    for record in run:
        if "train" in record.counts and metric in record.scores.get("test", {}):
            scores[record.counts["train"]].append(record.scores["test"][metric])
    return {size: statistics.fmean(scores[size]) for size in sorted(scores)}


def best_classical(board: Board, task: str, of_place: Lines) -> dict[int, float]:
    """The best score of a classical architecture by the number of training examples."""
    quality = display_info(board.main_metric(task)).quality
    scores: dict[int, list[float]] = defaultdict(list)
    for architecture, points in of_place.items():
        if board.is_classical(architecture):
            for size, score in points.items():
                scores[size].append(score)
    return {size: max(found, key=quality) for size, found in sorted(scores.items())}


def ahead_from(board: Board, task: str, points: Mapping[int, float], classical: Mapping[int, float]) -> int | None:
    """The smallest number of examples from which on a line is better than the best classical score
    at every size; None if it is not at the largest."""
    quality = display_info(board.main_metric(task)).quality
    found = None
    for size in sorted(points.keys() & classical.keys(), reverse=True):
        if quality(points[size]) <= quality(classical[size]):
            break
        found = size
    return found
