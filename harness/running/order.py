"""Which of the pending cells this run takes, in which order, and how long that should need."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from statistics import fmean, median

from harness.errors import UsageError
from harness.records import Cell, Record
from harness.settings import Limits


def parse_shard(text: str) -> tuple[int, int]:
    """``i/n`` as (i, n), i from 0; :class:`UsageError` when it is anything else."""
    found = re.fullmatch(r"(\d+)/(\d+)", text.strip())
    if not found or not int(found[1]) < int(found[2]):
        raise UsageError(
            f"--shard {text}: expected i/n with i from 0 to n - 1, such as 0/4, 1/4, 2/4, 3/4 for four machines"
        )
    return int(found[1]), int(found[2])


def in_shard(cell: Cell, shard: tuple[int, int]) -> bool:
    """Whether a cell belongs to part i of n: by its key alone, so that every machine decides alike
    whatever it has run before."""
    i, n = shard
    return int(cell.key, 16) % n == i


class Estimate:
    """Seconds that cells should take, by earlier records of the same machine or another.

    A cell takes what its other seeds took; else what its architecture took on the task under any
    settings; else the median of everything seen on the task, or at all. ``None`` before there is
    any record.
    """

    def __init__(self, records: Iterable[Record]):
        self._seconds: dict[tuple[object, ...], list[float]] = {}
        for record in records:
            if record.status in ("ok", "timeout") and record.seconds.get("total"):
                for known in _likeness(record):
                    self._seconds.setdefault(known, []).append(record.seconds["total"])

    def __call__(self, cell: Cell) -> float | None:
        *close, task, anything = _likeness(cell)
        for known in close:
            if known in self._seconds:
                return fmean(self._seconds[known])
        for known in (task, anything):
            if known in self._seconds:
                return median(self._seconds[known])
        return None

    def longest_first(self, cells: Sequence[Cell]) -> list[Cell]:
        """The cells, the longest first: one that is started last and runs for hours would leave all
        other workers idle."""
        return sorted(cells, key=lambda cell: -(self(cell) or 0.0))

    def total(self, cells: Sequence[Cell], workers: int) -> float | None:
        """Seconds until all cells have ended with so many at a time: at least the longest of
        them."""
        each = [self(cell) for cell in cells]
        known = [seconds for seconds in each if seconds is not None]
        if not known or len(known) < len(each):
            return None
        return max(max(known), sum(known) / workers)


def _likeness(of: Cell | Record) -> Sequence[tuple[object, ...]]:
    """What other cells have in common with one, the closest first."""
    limits = Limits.of(of.hyperparameters)
    settings = (of.tier, of.protocol, of.devices, of.precision)
    cap = (limits.max_train, limits.max_epochs)
    return (
        (of.architecture, of.task, *settings, *cap),
        (of.architecture, of.task, *settings),
        (of.architecture, of.task),
        (of.task, of.tier),
        (),
    )
