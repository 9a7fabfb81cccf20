"""Growth of planning, resuming, reading and the pages up to 200,000 cells:
``python -m tools.speed.many results/speed.json``.

Every pair that fits is planned on the mini tier with so many seeds that it makes the wanted number
of cells. Records that the script makes up stand for their results. Each step runs in a process of
its own, and its costs are those of that process and its children (memory: of the largest). Takes
about half an hour and 2 GB of disk.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness import registry
from harness.records import Cell, Record, Store
from harness.running import grid
from tools.speed.goals import here, keep

SIZES = (25_000, 50_000, 100_000, 200_000)
"""Numbers of cells."""

PLAN = """
from pathlib import Path
from harness.running.request import Request
from harness.running.session import Session
Session(Request(Path({folder!r}), protocol="equal", seeds=range({seeds}), dry_run=True), tell=str)
"""
READ = """
import archbench
assert archbench.results({folder!r})["key"].nunique() == {cells}
"""
"""Both resuming (where there are records) and planning (where there are none) are the first."""
PAGES = """
import leaderboard
leaderboard.main(["--results", {folder!r}, "--out", {folder!r} + "/leaderboard"])
"""


@functools.cache
def fitting() -> list[Cell]:
    """The cells of the grid that fit, of seed 0."""
    entries = [list(registry.entries(sort).values()) for sort in ("architectures", "tasks")]
    planned = grid.plan(*entries, tier="mini", protocol="equal", seeds=[0])
    return [item.cell for item in planned if item.reason is None]


def cells_of(seeds: range) -> Iterator[Cell]:
    """The cells of the grid that fit, seed by seed."""
    for seed in seeds:
        yield from (replace(cell, seed=seed) for cell in fitting())


def make(folder: Path, cells: Iterator[Cell]) -> None:
    """Write a record of each cell, as large as a real one, without predictions."""
    store = Store(folder)
    for number, cell in enumerate(cells):
        task = registry.entry("tasks", cell.task)
        score = number % 997 / 997
        curve = [{"epoch": e, "train_loss": 1 / e, task.main_metric: score, "seconds": 2.0} for e in range(1, 9)]
        record = Record.skeleton(
            cell,
            "ok",
            scores={split: dict.fromkeys(task.metrics, score) for split in ("dev", "test")},
            main_metric=task.main_metric,
            counts={"train": 1000, "dev": 100, "test": 100},
            speed={"train_examples_per_second": 50.0, "latency_ms_p50": 1.0, "latency_ms_p95": 2.0},
            memory={"peak_rss_mib": 500.0},
            parameters={"total": 1_000_000, "embedding": 1000},
            seconds={"train": 60.0, "dev": 1.0, "other": 2.0, "total": 63.0},
            training={"best_epoch": 5, "epochs": 8, "curve": curve},
            sees=[],
        )
        path = store.path(record)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(record.to_json(), encoding="utf-8")


def cost(program: str) -> dict[str, float]:
    """Processor seconds and largest memory (MiB) of a Python program and its children."""
    process = subprocess.Popen([sys.executable, "-W", "ignore", "-c", program], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"exit status {os.waitstatus_to_exitcode(status)} of:{program}")
    return {"seconds": round(used.ru_utime + used.ru_stime, 2), "mib": round(used.ru_maxrss / 1024)}


def measured(cells: int) -> dict[str, Any]:
    """The costs of about so many cells."""
    seeds = range(round(cells / len(fitting())))
    with tempfile.TemporaryDirectory() as folder:
        plan = PLAN.format(folder=folder, seeds=len(seeds))
        planning = cost(plan)
        make(Path(folder), cells_of(seeds))
        made = sum(len(files) for _, _, files in os.walk(folder))
        resuming = cost(plan)
        reading = cost(READ.format(folder=folder, cells=made))
        pages = cost(PAGES.format(folder=folder))
    return {"cells": made, "planning": planning, "resuming": resuming, "results": reading, "leaderboard": pages}


def main(file: Path) -> None:
    """Measure every size and keep the figures."""
    rows = []
    for size in SIZES:
        rows += here([measured(size)])
        print(rows[-1], flush=True)
        keep(file, many=rows)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
