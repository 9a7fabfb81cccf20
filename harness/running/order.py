"""Sharding, ordering and time estimates of pending cells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from statistics import fmean, median

from harness.errors import UsageError
from harness.records import Cell, Record
from harness.settings import Limits


def parse_shard(text: str) -> tuple[int, int]:
    """``i/n`` as (i, n), i from 0; :class:`UsageError` when it is anything else."""
    numbers = re.fullmatch(r"(\d+)/(\d+)", text.strip())
    if not numbers or not int(numbers[1]) < int(numbers[2]):
        raise UsageError(
            f"--shard {text}: expected i/n with i from 0 to n - 1, such as 0/4, 1/4, 2/4, 3/4 for four machines"
        )
    return int(numbers[1]), int(numbers[2])


def in_shard(cell: Cell, shard: tuple[int, int]) -> bool:
    """True when a cell belongs to part i of n.

    Its key alone decides, so that every machine splits a grid alike, whatever it has run before.
    """
    i, n = shard
    return int(cell.key, 16) % n == i


class Estimate:
    """Predicted durations of cells in seconds, from earlier records.

    A cell takes what its other seeds took; else what its architecture took on the task under any
    settings; else the median of all records of the task, or of all records. The prediction is None
    without any record.
    """

    def __init__(self, records: Iterable[Record]):
        self._seconds: dict[tuple[object, ...], list[float]] = {}
        for record in records:
            if record.status in ("ok", "timeout") and record.seconds.get("total"):
                for group in _groups(record):
                    self._seconds.setdefault(group, []).append(record.seconds["total"])

    def __call__(self, cell: Cell) -> float | None:
        *close, task, everything = _groups(cell)
        for group in close:
            if group in self._seconds:
                return fmean(self._seconds[group])
        for group in (task, everything):
            if group in self._seconds:
                return median(self._seconds[group])
        return None

    def longest_first(self, cells: Sequence[Cell]) -> list[Cell]:
        """The cells in order of predicted duration, the longest first.

        A long cell that starts last would leave all other workers idle.
        """
        return sorted(cells, key=lambda cell: -(self(cell) or 0.0))

    def total(self, cells: Sequence[Cell], workers: int) -> float | None:
        """Seconds until all cells have ended, ``workers`` at a time: at least the longest of them.

        None when the duration of a cell is unknown.
        """
        durations = [seconds for cell in cells if (seconds := self(cell)) is not None]
        if not durations or len(durations) < len(cells):
            return None
        return max(max(durations), sum(durations) / workers)


def _groups(cell: Cell | Record) -> Sequence[tuple[object, ...]]:
    """Keys of the groups of similar cells that a cell belongs to, the most similar first."""
    limits = Limits.of(cell.hyperparameters)
    settings = (cell.tier, cell.protocol, cell.devices, cell.precision)
    cap = (limits.max_train, limits.max_epochs)
    return (
        (cell.architecture, cell.task, *settings, *cap),
        (cell.architecture, cell.task, *settings),
        (cell.architecture, cell.task),
        (cell.task, cell.tier),
        (),
    )
