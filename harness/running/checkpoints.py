"""Checkpoints of a cell, from which a training that was cut off goes on."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

from harness.records import Cell
from harness.records.code_digest import code_of_cell
from harness.records.provenance import own_version
from harness.running.worker_settings import Settings


def checkpoints(cell: Cell, settings: Settings, data: dict[str, str]) -> Path:
    """The folder of the checkpoints from which a fit of this cell may go on: they were made by the
    same code from the same ``data`` (digests of splits, companions and parents, by what they are
    of). Others of this cell are removed."""
    origin = [code_of_cell(cell), own_version(), data]
    digest = hashlib.sha256(json.dumps(origin, sort_keys=True).encode()).hexdigest()[:16]
    folder = settings.work / "checkpoints" / f"{cell.key}-{digest}"
    forget_checkpoints(cell, settings, folder)
    return folder


def forget_checkpoints(cell: Cell, settings: Settings, kept: Path | None = None) -> None:
    """Remove the checkpoints of a cell but those in the folder ``kept``, whose training goes on."""
    for folder in (settings.work / "checkpoints").glob(f"{cell.key}*"):
        if folder != kept:
            shutil.rmtree(folder, ignore_errors=True)
            if kept is not None:
                print(
                    "the checkpoint there was is one of another parent or of other code or data: training begins anew"
                )
