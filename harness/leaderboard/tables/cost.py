"""What a result cost: speed, memory, size and time, each with how it is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from harness.leaderboard.board import Result
from harness.leaderboard.significance import summarise
from harness.leaderboard.tables.formatting import magnitude, number
from harness.leaderboard.tables.table import BLANK, Part
from harness.records import UNSTABLE_ABOVE, Record


def device(record: Record) -> str:
    """Where a record was made, in words."""
    environment = record.environment
    name = str(environment.get("device") or "cpu")
    if name == "cpu":
        name = f"{environment.get('cpu') or 'CPU'}, {environment.get('threads', '?')} threads"
    return f"{record.devices} x {name}" if record.devices > 1 else name


Measure = Callable[[Record], float | None]
SPEEDS = ("training examples/s", "training tokens/s", "latency p50 ms", "latency p95 ms")
"""The measures that other cells on the machine slow down."""
MEASURES: dict[str, Measure] = {
    "training examples/s": lambda r: r.speed.get("train_examples_per_second"),
    "training tokens/s": lambda r: r.speed.get("train_tokens_per_second"),
    "training spread": lambda r: r.speed.get("train_spread"),
    "latency p50 ms": lambda r: r.speed.get("latency_ms_p50"),
    "latency p95 ms": lambda r: r.speed.get("latency_ms_p95"),
    "peak RSS MiB": lambda r: r.memory.get("peak_rss_mib"),
    "peak GPU MiB": lambda r: r.memory.get("peak_gpu_mib"),
    "training s": lambda r: r.seconds.get("train"),
}
COUNTS: dict[str, tuple[Measure, Callable[[float], str]]] = {
    "parameters": (lambda r: r.parameters.get("total"), lambda value: f"{value:,.0f}"),
    "FLOPs/example": (lambda r: r.flops_per_example, magnitude),
}


def by_device(result: Result) -> dict[str, list[Record]]:
    """Records that ended ok by the machine they ran on: speed is never averaged over two kinds of
    machine."""
    found: dict[str, list[Record]] = {}
    for record in result.ok:
        found.setdefault(device(record), []).append(record)
    return dict(sorted(found.items()))


def mean_of(records: Iterable[Record], measure: Measure) -> float | None:
    """Mean of a measurement over the records that have it."""
    values = [value for record in records if (value := measure(record)) is not None]
    return summarise(values).mean if values else None


def most_beside(records: Iterable[Record]) -> int | None:
    """The most other cells that ran beside one of the records' cells; None where that was recorded
    of none of them."""
    return max((found for record in records if (found := record.speed.get("beside")) is not None), default=None)


UNSTABLE = (
    f"the rates of ten consecutive parts of the training have a standard deviation above {100 * UNSTABLE_ABOVE:.0f} %"
    " of their mean, or there were too few steps to tell"
)
BESIDE = "measured while other cells ran on the same machine: slower than alone"
COLUMNS = ("seeds ok", "training examples", *MEASURES, "other cells", *COUNTS, "device")


def cost_cells(result: Result) -> list[list[Part]]:
    """The cells of :data:`COLUMNS`: measurements have one line for each kind of machine, in the
    order of the last column."""
    machines = by_device(result)
    if not machines:
        return [BLANK] * len(COLUMNS)
    seeds = Part(", ".join(str(record.seed) for record in result.ok), order=len(result.ok))
    cells = [[seeds], [Part(f"{result.trained_on:,}", order=result.trained_on)] if result.trained_on else BLANK]
    for name in MEASURES:
        cells.append([_measured(name, records) for records in machines.values()])
    cells.append([_company(records) for records in machines.values()])
    for measure, show in COUNTS.values():
        value = mean_of(result.ok, measure)
        cells.append([Part(show(value), order=value)] if value is not None else BLANK)
    return [*cells, [Part(name) for name in machines]]


def _measured(name: str, records: Sequence[Record]) -> Part:
    value = mean_of(records, MEASURES[name])
    if value is None:
        return BLANK[0]
    shaky = name in SPEEDS[:2] and any(record.speed.get("unstable") for record in records)
    crowded = name in SPEEDS and most_beside(records)
    marks = (" †" if crowded else "") + (" unstable" if shaky else "")
    notes = (*((BESIDE,) if crowded else ()), *((UNSTABLE,) if shaky else ()))
    return Part(number(value) + marks, "", notes, order=value)


def _company(records: Sequence[Record]) -> Part:
    """How many other cells there were; of records that do not say, what else the machine did."""
    silent = [record for record in records if record.speed and record.speed.get("beside") is None]
    most = most_beside(records)
    if not silent:
        return BLANK[0] if most is None else Part(str(most), order=most)
    averages = (record.environment.get("load_average") for record in silent)  # of a foreign record it may be anything
    loads = [f"{load:.1f}" for load in averages if isinstance(load, int | float)]
    title = f"1-minute load average of the machine at the end: {', '.join(loads)}" if loads else ""
    known = "" if most is None else f"{most}; "
    return Part(f"{known}not recorded" + (f" ({len(silent)})" if known else ""), "quiet", title=title, order=most)
