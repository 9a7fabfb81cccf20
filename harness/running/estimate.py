"""Time that cells will take, foretold from the records of others."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean, median

from harness import registry
from harness.records import Cell, Record
from harness.records.blocks import Ruler
from harness.registry import TaskEntry
from harness.running.ruler import rescaled
from harness.settings import PILOT_SHARE, Limits

SPEEDS = Path(__file__).with_name("speeds.csv")
"""Training examples per second of each architecture on a generated corpus, rescaled to one machine
(``results/speed.json``)."""
UNTRAINED = ("floor", "fit")
"""Kinds that read each training row once."""
Pair = tuple[str, str, bool]
"""Architecture, task, and whether its corpus is the generated one."""
SCORING = 0.1
"""Share of a training's time that its cell takes for dev and test: the median of 180 cells of
whole training sets."""


def measured_speeds() -> dict[str, float]:
    """The rates of :data:`SPEEDS` by architecture."""
    with SPEEDS.open(encoding="utf-8", newline="") as file:
        return {row["architecture"]: float(row["examples_per_second"]) for row in csv.DictReader(file)}


class _Times:
    """Times of similar cells; those of the processor count alone where there are any, since other
    work of the machine makes those of the clock longer."""

    def __init__(self) -> None:
        self.of_processor: list[float] = []
        self.of_clock: list[float] = []

    def add(self, seconds: float, of_processor: bool) -> None:
        (self.of_processor if of_processor else self.of_clock).append(seconds)

    @property
    def known(self) -> list[float]:
        return self.of_processor or self.of_clock

    @property
    def slowdown(self) -> float | None:
        """Times of the clock over those of the processor, of the same cells."""
        return median(self.of_clock) / median(self.of_processor) if self.of_clock and self.of_processor else None


class Estimate:
    """Predicted durations of cells in seconds of the processor.

    A cell takes what its other seeds took that ended, and no less than was cut off by a limit. Else
    it is what it reads times the time for each example read: that of the architecture on the task
    under other settings, or the time by its measured speed, or by its records on other tasks, for
    as long a text as the task has. Of a task without any record that is told by its ``small``
    budget, which takes about as long on every task. Under another protocol an example takes longer,
    as those pairs show that have records of both. Times of another machine or day are those of this
    one where ``ruler`` and theirs can be compared.

    ``limit`` is the most seconds that a cell may take: one whose training would take longer ends
    with its first pilot, once that took its share of them. A task has as many training examples as
    its records say, or as it declares; :attr:`examples` says so of others. The prediction is None
    without any record.
    """

    def __init__(
        self,
        records: Iterable[Record],
        ruler: Ruler | None = None,
        limit: float | None = None,
    ):
        self._limit = limit
        self.examples: dict[str, int] = {}
        """Numbers of training examples by task, as its files have them."""
        self._tasks, self._architectures = registry.entries("tasks"), registry.entries("architectures")
        self._seeds: dict[str, _Times] = {}
        self._totals: dict[tuple[object, ...], _Times] = {}
        self._cut: dict[str, float] = {}
        self._each: dict[str, dict[Pair, _Times]] = {}
        self._counts: dict[tuple[str, bool], list[int]] = {}
        self._speeds = measured_speeds()
        for record in records:
            if record.status in ("ok", "timeout"):
                # Twice the speed is half the time.
                self._add(record, rescaled(1.0, record.ruler, ruler) or 1.0)
        self._known = self._known_times()
        """Processor seconds for each example that an architecture reads on a task, by protocol."""
        self._factors = self._fitted_factors()
        self._pairs: dict[Pair, float] = {}
        """The same as it is or would be under the commonest protocol."""
        for protocol, pairs in sorted(self._known.items(), key=lambda each: len(each[1])):
            self._pairs |= {pair: seconds / self._factor(pair[0], protocol) for pair, seconds in pairs.items()}
        self._lengths = self._fitted_lengths()

    def _add(self, record: Record, speed: float) -> None:
        seconds = record.seconds
        total, of_processor = seconds.get("total_processor"), True
        if total is None:
            total, of_processor = seconds.get("total"), False
        if not total:
            return
        row = record.cell.row
        if record.status == "timeout":
            self._cut[row] = max(self._cut.get(row, 0.0), total / speed)
            return
        self._seeds.setdefault(row, _Times()).add(total / speed, of_processor)
        for group in _groups(record):
            self._totals.setdefault(group, _Times()).add(total / speed, of_processor)
        if count := record.counts.get("train"):
            mini = record.tier == "mini"
            if Limits.of(record.hyperparameters).labelled is None:
                self._counts.setdefault((record.task, mini), []).append(count)
            train = seconds.get("train_processor") if of_processor else seconds.get("train")
            each = train / count / record.passes if train and record.passes else total / count
            pair = record.architecture, record.task, mini
            self._each.setdefault(record.protocol, {}).setdefault(pair, _Times()).add(each / speed, of_processor)

    def _known_times(self) -> dict[str, dict[Pair, float]]:
        """Times of the processor by protocol; those of the clock alone are shortened by as much as
        pairs with both show."""
        every = [times for pairs in self._each.values() for times in pairs.values()]
        slowdown = median([found for times in every if (found := times.slowdown)] or [1.0])
        # A fit of a few rows takes its fixed cost alone: the cheapest example is one of many.
        return {
            protocol: {
                pair: some(times.of_processor) if times.of_processor else some(times.of_clock) / slowdown
                for pair, times in pairs.items()
                for some in (min if self._kind(pair[0]) in UNTRAINED else median,)
            }
            for protocol, pairs in self._each.items()
        }

    def _fitted_factors(self) -> dict[str, float]:
        """The time that a training takes for an example under each protocol, as a multiple of that
        under the commonest."""
        common = max(self._known.values(), key=len, default={})
        trained = {pair for pair in common if self._kind(pair[0]) not in UNTRAINED}
        shared = {protocol: pairs.keys() & trained for protocol, pairs in self._known.items()}
        return {
            protocol: median(self._known[protocol][pair] / common[pair] for pair in pairs)
            for protocol, pairs in shared.items()
            if pairs
        }

    def _factor(self, architecture: str, protocol: str) -> float:
        return 1.0 if self._kind(architecture) in UNTRAINED else self._factors.get(protocol, 1.0)

    def _fitted_lengths(self) -> dict[tuple[str, bool], float]:
        """Lengths of the texts of each task, beside those on which speeds were measured: how many
        times as long an example takes. Architectures of which no speed was measured have one
        afterwards, if they have a record."""
        found: dict[tuple[str, bool], list[float]] = {}
        for (architecture, task, mini), seconds in self._pairs.items():
            if architecture in self._speeds:
                found.setdefault((task, mini), []).append(seconds * self._speeds[architecture])
        lengths = {of: median(factors) for of, factors in found.items()}
        # What an architecture takes on other tasks says more than one measurement on short texts.
        own: dict[str, list[float]] = {}
        for (architecture, task, mini), seconds in self._pairs.items():
            if (length := lengths.get((task, mini))) is not None:
                own.setdefault(architecture, []).append(length / seconds)
        self._speeds |= {architecture: median(speeds) for architecture, speeds in own.items()}
        small = {
            each.id: lengths[each.id, False] * read
            for each in self._tasks.values()
            if (each.id, False) in lengths and (read := _small(each))
        }
        for each in self._tasks.values():
            if (each.id, False) not in lengths and small and (read := _small(each)):
                lengths[each.id, False] = median(small.values()) / read
        return lengths

    def __call__(self, cell: Cell) -> float | None:
        seeds, cut = self._seeds.get(cell.row), self._cut.get(cell.row)
        if seeds:
            return self._limited(fmean(seeds.known))
        foretold = self._by_others(cell)
        return foretold if cut is None else self._limited(max(cut, foretold or 0.0))

    def _by_others(self, cell: Cell) -> float | None:
        """Seconds of a cell of which no seed has ended."""
        pair, of_task, everything = _groups(cell)
        if (training := self._training(cell)) is not None:
            if self._kind(cell.architecture) in UNTRAINED:
                return self._limited(training)
            settings = cell.hyperparameters["training"]
            rates = len(settings.get("learning_rates") or ())
            # A pilot makes a share of the settings' steps, however few passes a cap leaves of them.
            pilot = PILOT_SHARE * settings["epochs"] / cell.budget["passes"]
            if self._limit is not None and training > self._limit:
                return self._limited(pilot * self._limit if rates > 1 else PILOT_SHARE * training)
            return self._limited(training * (1 + (rates * pilot if rates > 1 else 0.0) + SCORING))
        if pair in self._totals:
            return self._limited(fmean(self._totals[pair].known))
        of_some = min if self._kind(cell.architecture) == "floor" else median
        for group in (of_task, everything):
            if group in self._totals:
                return self._limited(of_some(self._totals[group].known))
        return None

    def _limited(self, seconds: float) -> float:
        return seconds if self._limit is None else min(seconds, self._limit)

    def _kind(self, architecture: str) -> str | None:
        entry = self._architectures.get(architecture)
        return entry.kind if entry else None

    def _training(self, cell: Cell) -> float | None:
        """Seconds of the training of a cell, or of all of one without gradients; None where that is
        not known."""
        read, mini = self._read(cell), cell.tier == "mini"
        if read is None:
            return None
        pair, factor = (cell.architecture, cell.task, mini), self._factor(cell.architecture, cell.protocol)
        if (seconds := self._known.get(cell.protocol, {}).get(pair)) is not None:
            return read * seconds
        if (seconds := self._pairs.get(pair)) is not None:
            return read * factor * seconds
        if self._kind(cell.architecture) == "floor":
            return None  # it learns next to nothing, from texts of any length: as long as the fastest cell
        length, speed = self._lengths.get((cell.task, mini)), self._speeds.get(cell.architecture)
        return read * factor * length / speed if length is not None and speed else None

    def _read(self, cell: Cell) -> float | None:
        """Examples that a training reads in all its passes; None where that is not known."""
        count = self._examples(cell)
        if self._kind(cell.architecture) in UNTRAINED or count is None:
            return count
        passes = cell.budget.get("passes")
        least = (cell.budget.get("min_steps") or 0) * (cell.budget.get("batch_size") or 0)
        return max(count * passes, least) if passes else None

    def _examples(self, cell: Cell) -> int | None:
        """Training examples of a cell: those of its budget, or as many as its task has."""
        counts, task = self._counts.get((cell.task, cell.tier == "mini")), self._tasks.get(cell.task)
        there = self.examples.get(cell.task) or (counts and round(median(counts)))
        if there is None and task is not None and cell.tier != "mini":
            there = task.sizes.get("train")
        most = Limits.of(cell.hyperparameters).labelled
        return min([count for count in (most, there) if count], default=None)

    def lacks_size(self, cell: Cell) -> bool:
        """True if there are records, and neither one of them nor its budget tells how many training
        examples a cell has outside the generated corpora."""
        told = (cell.task, False) in self._counts or cell.task in self.examples
        return bool(self._totals) and not told and Limits.of(cell.hyperparameters).labelled is None

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


def _small(task: TaskEntry) -> float | None:
    """Examples that a training of a task's budget ``small`` reads; None where it has none."""
    budget = registry.budgets_of(task).get("small")
    if budget is None or (examples := budget.examples or task.sizes.get("train")) is None:
        return None
    return max(examples * budget.passes, budget.min_steps * budget.batch_size)


def _groups(cell: Cell | Record) -> Sequence[tuple[object, ...]]:
    """Keys of the groups of similar cells that a cell belongs to, the most similar first."""
    return (cell.architecture, cell.task), (cell.task, cell.tier), ()
