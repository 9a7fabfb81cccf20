"""Scores by the number of training examples, and the number from which on an architecture beats
the best classical one."""

from __future__ import annotations

import functools
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from harness.leaderboard.board import Board
from harness.leaderboard.results import Section, versioned
from harness.metrics import display_info
from harness.records import Record
from harness.records.groups import Group, along, group_of, without

FEWEST = 3
"""Training sizes that a line must have."""


class Place(NamedTuple):
    """The part of a group that all lines of a table share: all but its training examples."""

    group: Group

    @classmethod
    def of(cls, record: Record) -> Place:
        """The place of a record's line."""
        group = without(group_of(record), ("train",))
        return cls(group._replace(budget=group.budget._replace(name="", examples=None)))

    @property
    def words(self) -> str:
        """Tier, protocol and limits of the training in words."""
        group = self.group
        protocol = versioned(group.protocol, group.protocol_version)
        return ", ".join(filter(None, (f"tier {group.tier}", f"protocol {protocol}", group.budget.training_words)))

    @property
    def id(self) -> str:
        """HTML id of what shows its lines."""
        return f"sizes-{self.group.task}-{self.group.id}"


Lines = dict[str, dict[int, float]]
"""By architecture: the mean test score over the seeds by the number of training examples."""


@functools.cache  # the table and the plot show the same ones
def lines(board: Board, task: str) -> dict[Place, Lines]:
    """The lines of a task's records that were trained on several numbers of examples and are equal
    in all else but the seed, in the order of the survey's tables. A point is the mean of the seeds
    that have it. Left out: floors, rows that see more than their training examples, and of the
    lines of one architecture in one place (other settings) all but the longest."""
    metric = board.main_metric(task)
    ours = [
        record
        for record in board.records
        if record.task == task and not board.is_floor(record.architecture) and Section.of(group_of(record)).alone
    ]
    if len({record.counts.get("train") for record in ours}) < FEWEST:
        return {}
    found: dict[Place, Lines] = {}
    for run in sorted(along("examples", ours), key=lambda run: board.order(run[0].architecture)):
        points = _points(run, metric)
        if len(points) < FEWEST:
            continue
        architecture, of_place = run[0].architecture, found.setdefault(Place.of(run[0]), {})
        if len(points) > len(of_place.get(architecture, ())):
            of_place[architecture] = points
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
