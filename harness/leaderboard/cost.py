"""What a result cost: speed, memory, size and time, each with how it is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from harness.leaderboard.board import Result
from harness.leaderboard.cells import magnitude, number
from harness.leaderboard.table import BLANK, Part
from harness.records import Record
from harness.statistics import summarise


def device(record: Record) -> str:
    """Where a record was made, in words."""
    environment = record.environment
    name = str(environment.get("device") or "cpu")
    if name == "cpu":
        name = f"{environment.get('cpu') or 'CPU'}, {environment.get('threads', '?')} threads"
    return f"{record.devices} x {name}" if record.devices > 1 else name


Measure = Callable[[Record], float | None]
MEASURES: dict[str, Measure] = {
    "training examples/s": lambda r: r.speed.get("train_examples_per_second"),
    "training tokens/s": lambda r: r.speed.get("train_tokens_per_second"),
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
    """Records that ended ok by the machine they ran on: speed is never averaged over two kinds of machine."""
    found: dict[str, list[Record]] = {}
    for record in result.ok:
        found.setdefault(device(record), []).append(record)
    return dict(sorted(found.items()))


def mean_of(records: Iterable[Record], measure: Measure) -> float | None:
    """Mean of a measurement over the records that have it."""
    values = [value for record in records if (value := measure(record)) is not None]
    return summarise(values).mean if values else None


UNSTABLE = "the spread of this measurement is too wide to quote its median alone"
COLUMNS = ("seeds ok", "training examples", *MEASURES, *COUNTS, "device")


def cost_cells(result: Result) -> list[list[Part]]:
    """The cells of :data:`COLUMNS`: measurements have one line for each kind of machine, in the order of the last column."""
    machines = by_device(result)
    if not machines:
        return [BLANK] * len(COLUMNS)
    seeds = Part(", ".join(str(record.seed) for record in result.ok), order=len(result.ok))
    cells = [[seeds], [Part(f"{result.trained_on:,}", order=result.trained_on)] if result.trained_on else BLANK]
    for name, measure in MEASURES.items():
        lines = []
        for records in machines.values():
            value = mean_of(records, measure)
            shaky = name.startswith(("training e", "latency")) and any(record.speed.get("unstable") for record in records)
            if value is None:
                lines.append(BLANK[0])
            else:
                lines.append(Part(number(value) + (" unstable" if shaky else ""), "", (UNSTABLE,) if shaky else (), order=value))
        cells.append(lines)
    for measure, show in COUNTS.values():
        value = mean_of(result.ok, measure)
        cells.append([Part(show(value), order=value)] if value is not None else BLANK)
    return [*cells, [Part(name) for name in machines]]
