"""Cells that train on several devices: one process per device, with averaged gradients (DDP, FSDP).

Lightning starts the extra processes by repeating the command line of the first one. That would be
``archbench run``, a grid inside the cell, so :func:`lead` puts :mod:`harness.running.follower` in
its place. The extra processes only train; the first one scores and writes the record. They are
started, not forked, so they may use a GPU and have thread pools of their own.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import sys
from pathlib import Path

from harness.records import Cell
from harness.running.worker_settings import Settings


def to_json(cell: Cell, settings: Settings) -> str:
    """A cell and its settings as text for a command line."""
    values = dataclasses.asdict(settings) | {"needed": sorted(settings.needed)}
    return json.dumps([cell.to_dict(), values], default=str)


def from_json(text: str) -> tuple[Cell, Settings]:
    """The cell and settings that :func:`to_json` wrote."""
    cell, values = json.loads(text)
    paths = {name: values[name] and Path(values[name]) for name in ("results", "data_dir", "work", "vectors")}
    sets = {"plugins": tuple(map(Path, values["plugins"])), "needed": frozenset(values["needed"])}
    return Cell.from_dict(cell), Settings(**values | paths | sets)


def lead(cell: Cell, settings: Settings) -> None:
    """Make Lightning start the extra processes of this cell as :mod:`harness.running.follower`.

    Call it in the cell's own process.
    """
    sys.argv = ["archbench", to_json(cell, settings)]
    sys.modules["__main__"].__spec__ = importlib.util.find_spec("harness.running.follower")
    os.environ["PYTHONSAFEPATH"] = "1"  # `python -m` would look for modules in the folder it is started in first
