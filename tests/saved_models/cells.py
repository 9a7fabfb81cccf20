"""Small cells that are run here and kept."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness import registry
from harness.records import Record, Store
from harness.running import grid
from harness.running.worker import run_cell
from harness.running.worker_settings import Settings
from harness.saved_models.model import KeptModel, load
from harness.task import Row
from tests.support.planned_cells import tiny_sizes


def kept_cell(
    architecture: str,
    task: str,
    results: Path,
    most: int | None = 20,
    precision: str = "32",
    inputs: Sequence[str] = (),
    **options: Any,
) -> Record:
    """The record of a tiny cell on mini whose model is kept below ``results``; ``options`` are
    further ones of the worker."""
    entry = registry.entry("architectures", architecture)
    (planned,) = grid.plan(
        [entry],
        [registry.entry("tasks", task)],
        tier="mini",
        protocol="smoke",
        seeds=[0],
        max_train=most,
        precision=precision,
        inputs=inputs,
        overrides=[
            *tiny_sizes(architecture),
            *([] if entry.kind in ("fit", "floor") else [f"{architecture}.training.vector_dims=8"]),
        ],
    )
    assert planned.reason is None, planned.reason
    settings = Settings(results, None, (), 1, None, None, results / "work", keep=True)
    settings = dataclasses.replace(settings, **options)
    record = run_cell(planned.cell, settings)
    Store(results).write(record)
    return record


def loaded(record: Record, results: Path) -> KeptModel:
    """The kept model of a record."""
    return load(results / "models" / record.key)


def rows_of_test(task: str) -> list[Row]:
    """The test rows of a mini task, with their answers."""
    entry = registry.entry("tasks", task)
    return registry.load(entry)(entry).load("test", "mini").to_list()
