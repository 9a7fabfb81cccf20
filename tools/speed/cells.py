"""Cells as the benchmarks need them: one built in this process, and the command that runs a grid of
them in others."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from harness import registry
from harness.records import Cell
from harness.running import grid
from harness.running.assembly import Assembly
from harness.running.worker_settings import Settings
from harness.settings import FULL, TrainingSettings
from harness.training import protocols

RUN = [sys.executable, "-m", "harness.cli", "run"]
"""``archbench run``."""


def assembly(
    architecture: str,
    task: str,
    data: Path | None,
    work: Path,
    protocol: str = "equal",
    rows: int | None = None,
    **changed: Any,
) -> Assembly:
    """A cell on one thread, ready to train on ``rows`` texts (None: all) by the protocol's settings
    for all data but for those ``changed``."""
    kind, what = registry.entry("architectures", architecture), registry.entry("tasks", task)
    settings = protocols.training(protocol, kind, what, registry.budgets_of(what)[FULL])
    chosen = grid.hyperparameters(kind) | {
        "training": TrainingSettings.from_dict(settings.to_dict(complete=True) | changed).to_dict(),
        "limits": {"max_train": rows, "max_epochs": None},
        "vectors": None,
    }
    cell = Cell(kind.id, kind.version, what.id, what.version, "local" if data else "mini", protocol, chosen, seed=0)
    return Assembly(cell, Settings(work, data, (), 1, None, None, work))
