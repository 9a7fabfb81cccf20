"""Cost of a result: speed, memory, size and time, as cells of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from harness.leaderboard.results import Result
from harness.leaderboard.speeds import Speed
from harness.leaderboard.summary import summarise
from harness.leaderboard.tables.formatting import format_magnitude, format_number, training_size
from harness.leaderboard.tables.table import BLANK, Part
from harness.records import UNSTABLE_ABOVE, Record


def device(record: Record) -> str:
    """Name of the machine that a record was made on."""
    environment = record.environment
    name = str(environment.get("device") or "cpu")
    if name == "cpu":
        name = f"{environment.get('cpu') or 'CPU'}, {environment.get('threads', '?')} threads"
    return f"{record.devices} x {name}" if record.devices > 1 else name


Measure = Callable[[Record], float | None]
SPEEDS = ("training examples/s", "training tokens/s", "latency p50 ms", "latency p95 ms")
"""Measurements that other cells on the machine slow down."""
MEASURES: dict[str, Measure] = {
    "training examples/s": lambda r: r.speed.get("train_examples_per_second"),
    "training tokens/s": lambda r: r.speed.get("train_tokens_per_second"),
    "training spread": lambda r: r.speed.get("train_spread"),
    "latency p50 ms": lambda r: r.speed.get("latency_ms_p50"),
    "latency p95 ms": lambda r: r.speed.get("latency_ms_p95"),
    "peak RSS MiB": lambda r: r.memory.get("peak_rss_mib"),
    "peak GPU MiB": lambda r: r.memory.get("peak_gpu_mib"),
    "training s": lambda r: r.seconds.get("train"),
    "processor s": lambda r: r.seconds.get("train_processor"),
}
ONE_BATCH = (
    "operations of one batch, whose texts have about one length: up to twice too many or too few; later records count"
    " batches of all lengths"
)


class Count(NamedTuple):
    """A number of a cell that is the same on every machine: its measure, how it is written, and the
    note of a record that counts otherwise than others."""

    measure: Measure
    show: Callable[[float], str]
    note: Callable[[Record], str | None] = lambda _: None


COUNTS = {
    "parameters": Count(lambda r: r.parameters.get("total") or None, lambda value: f"{value:,.0f}"),
    "FLOPs/example": Count(
        lambda r: r.flops_per_example,
        format_magnitude,
        lambda r: ONE_BATCH if r.training and r.flops_batches is None else None,
    ),
}


def by_device(result: Result) -> dict[str, list[Record]]:
    """Records that ended ok by machine; speed is never averaged over two kinds of machine."""
    machines: dict[str, list[Record]] = {}
    for record in result.ok:
        machines.setdefault(device(record), []).append(record)
    return dict(sorted(machines.items()))


def mean_of(records: Iterable[Record], measure: Measure) -> float | None:
    """Mean of a measurement over the records that have it."""
    values = [value for record in records if (value := measure(record)) is not None]
    return summarise(values).mean if values else None


def max_other_cells(records: Iterable[Record]) -> int | None:
    """Largest number of other cells that ran on the machine at the same time; None if no record has
    it."""
    return max((count for record in records if (count := record.speed.get("beside")) is not None), default=None)


UNSTABLE = (
    f"the rates of ten consecutive parts of the training have a standard deviation above {100 * UNSTABLE_ABOVE:.0f} %"
    " of their mean, or there were too few steps to tell"
)
SHARED = "measured while other cells ran on the same machine: slower than alone"
COLUMNS = ("seeds ok", "training examples", *MEASURES, "other cells", *COUNTS, "device")


QUIET = ("latency, ms", "training, examples/s")
"""Speeds on a quiet machine (:mod:`harness.leaderboard.speeds`), the only ones to compare."""
COMPARED = ("seeds ok", "training examples", *COUNTS, *QUIET)
"""Costs of results side by side, without what other cells on the machine made slower."""


def cost_cells(result: Result) -> list[list[Part]]:
    """The cells of :data:`COLUMNS`; measurements have one line for each kind of machine, in the
    order of the last column."""
    machines = by_device(result)
    if not machines:
        return [BLANK] * len(COLUMNS)
    numbers = ", ".join(str(record.seed) for record in result.ok)
    seeds = Part(f"{len(result.ok)} (seed{'s' * (len(result.ok) > 1)} {numbers})", order=len(result.ok))
    cells = [[seeds], training_size(result)]
    cells += [[_measurement(name, records) for records in machines.values()] for name in MEASURES]
    cells.append([_other_cells(records) for records in machines.values()])
    return [*cells, *count_cells(result).values(), [Part(name) for name in machines]]


def count_cells(result: Result) -> dict[str, list[Part]]:
    """The cells of :data:`COUNTS` by column."""
    return {name: _count(count, result.ok) for name, count in COUNTS.items()}


def _count(count: Count, records: Sequence[Record]) -> list[Part]:
    mean = mean_of(records, count.measure)
    notes = tuple(dict.fromkeys(filter(None, map(count.note, records))))
    return BLANK if mean is None else [Part(count.show(mean), "", notes, order=mean)]


def quiet_cells(speed: Speed | None) -> dict[str, list[Part]]:
    """The cells of :data:`QUIET` by column."""
    values = (speed.latency_ms, speed.examples_per_second) if speed else (None, None)
    title = f"at the default size, on {speed.on}" if speed else ""
    return {
        name: [Part(format_number(value), title=title, order=value)] if value else BLANK
        for name, value in zip(QUIET, values, strict=True)
    }


def compared_cells(result: Result, speed: Speed | None) -> list[list[Part]]:
    """The cells of :data:`COMPARED`."""
    cells = quiet_cells(speed) | dict(zip(COLUMNS, cost_cells(result), strict=True))
    return [cells[name] for name in COMPARED]


def _measurement(name: str, records: Sequence[Record]) -> Part:
    value = mean_of(records, MEASURES[name])
    if value is None:
        return BLANK[0]
    unstable = name in SPEEDS[:2] and any(record.speed.get("unstable") for record in records)
    shared = name in SPEEDS and max_other_cells(records)
    marks = (" †" if shared else "") + (" unstable" if unstable else "")
    notes = (*((SHARED,) if shared else ()), *((UNSTABLE,) if unstable else ()))
    return Part(format_number(value) + marks, "", notes, order=value)


def _other_cells(records: Sequence[Record]) -> Part:
    """Number of other cells; for records without it, the load average."""
    silent = [record for record in records if record.speed and record.speed.get("beside") is None]
    cells = max_other_cells(records)
    if not silent:
        return BLANK[0] if cells is None else Part(str(cells), order=cells)
    averages = (record.environment.get("load_average") for record in silent)  # of a foreign record it may be anything
    loads = [f"{load:.1f}" for load in averages if isinstance(load, int | float)]
    title = f"1-minute load average of the machine at the end: {', '.join(loads)}" if loads else ""
    text = "not recorded" if cells is None else f"{cells}; not recorded ({len(silent)})"
    return Part(text, "quiet", title=title, order=cells)
