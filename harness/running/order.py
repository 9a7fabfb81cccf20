"""Sharding, ordering and time estimates of pending cells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from statistics import fmean, median

from harness import registry
from harness.errors import UsageError
from harness.records import Cell, Record
from harness.records.blocks import Ruler
from harness.running.ruler import rescaled
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

    A cell takes what its other seeds took; else what its architecture took on the task under other
    settings, in proportion to the examples read; else the median of all records of the task, or of
    all records. Times of another machine or day are those of this one where ``ruler`` and theirs
    can be compared. The prediction is None without any record.
    """

    def __init__(self, records: Iterable[Record], ruler: Ruler | None = None):
        self._seconds: dict[tuple[object, ...], list[float]] = {}
        self._rates: dict[tuple[str, str], list[float]] = {}
        self._tasks = registry.entries("tasks")
        for record in records:
            if record.status in ("ok", "timeout") and (seconds := record.seconds.get("total")):
                # Twice the speed is half the time.
                seconds /= rescaled(1.0, record.ruler, ruler) or 1.0
                for group in _groups(record):
                    self._seconds.setdefault(group, []).append(seconds)
                if record.status == "ok" and (read := _read(record, record.counts.get("train"))):
                    self._rates.setdefault((record.architecture, record.task), []).append(seconds / read)

    def __call__(self, cell: Cell) -> float | None:
        seeds, pair, task, everything = _groups(cell)
        if seeds in self._seconds:
            return fmean(self._seconds[seeds])
        if (rates := self._rates.get((cell.architecture, cell.task))) and (read := _read(cell, self._examples(cell))):
            return median(rates) * read
        if pair in self._seconds:
            return fmean(self._seconds[pair])
        for group in (task, everything):
            if group in self._seconds:
                return median(self._seconds[group])
        return None

    def _examples(self, cell: Cell) -> int | None:
        """Training examples of a cell: those of its budget, else as many as its task declares."""
        most, task = Limits.of(cell.hyperparameters).max_train, self._tasks.get(cell.task)
        return most or (task.sizes.get("train") if task else None)

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


def _read(cell: Cell | Record, examples: int | None) -> float | None:
    """Examples that a training reads in all its passes; None where that is not known."""
    passes = (cell.cell if isinstance(cell, Record) else cell).budget.get("passes")
    return examples * passes if examples and passes else None


def _groups(cell: Cell | Record) -> Sequence[tuple[object, ...]]:
    """Keys of the groups of similar cells that a cell belongs to, the most similar first."""
    limits = Limits.of(cell.hyperparameters)
    settings = (cell.tier, cell.protocol, cell.devices, cell.precision)
    cap = (limits.name, limits.max_train, limits.max_epochs)
    return (
        (cell.architecture, cell.task, *settings, *cap),
        (cell.architecture, cell.task),
        (cell.task, cell.tier),
        (),
    )
