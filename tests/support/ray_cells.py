"""Cells for tests/running/test_ray_engine.py, which must be importable on a Ray node without
pytest."""

from __future__ import annotations

import os
import signal
import sys
import time

import psutil

from harness.records import Cell, Record, Store
from harness.running.engines import local
from harness.running.worker_settings import Settings
from harness.saved_models import storage
from tests.support import fake_cells
from tests.support.fork_servers import LIGHT


def light() -> None:
    """Have a Ray worker's local engine preload nothing heavy: these cells need no torch."""
    local.PRELOAD = LIGHT


def run_cell(cell: Cell, settings: Settings) -> Record:
    """As :func:`fake_cells.run_cell`, with some endings that only Ray has; every attempt adds a
    line to ``attempts``."""
    with (settings.work / "attempts").open("a") as file:
        print(cell.architecture, os.getpid(), file=file)
    once = settings.work / f"once-{cell.key}"
    behaviour = cell.architecture.partition("-")[0]
    if behaviour == "always_kills_worker" or (behaviour == "kills_worker" and not once.exists()):
        once.touch()
        worker = psutil.Process(os.getppid()).parent()  # cell, fork server, Ray worker
        os.kill(worker.pid, signal.SIGKILL)
        time.sleep(60)
    if behaviour == "stops_worker" and not once.exists():
        once.touch()
        os.kill(psutil.Process(os.getppid()).ppid(), signal.SIGTERM)
        time.sleep(60)
    record = fake_cells.run_cell(cell, settings)
    if behaviour == "predicts":
        record.predictions = Store(settings.results).save_predictions(cell, ["a", "b"], [0, 1])
    if behaviour == "reads_parents":
        kept = {
            key: sorted(storage.files_of(settings.results, key)) for key in storage.ancestors(settings.results, cell)
        }
        record.environment = {"parents": kept}
    if behaviour == "modules":
        record.environment = {"ray": "ray" in sys.modules}
    return record
