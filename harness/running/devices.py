"""A cell that trains on several devices: one process for each, all of which average their gradients
(DDP, FSDP).

Lightning starts the further processes by repeating the command line of the first one. That is
``archbench run``, which would run a grid inside the cell; so the cell's process takes the name of
this module for it, which trains along and leaves scoring and the record to the first. Started anew
instead of forked, they may use a GPU and have thread pools of their own.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import sys
from pathlib import Path

from harness.records import Cell
from harness.running.grid import Settings


def to_json(cell: Cell, settings: Settings) -> str:
    """A cell and its settings as text that fits a command line."""
    return json.dumps([cell.to_dict(), dataclasses.asdict(settings)], default=str)


def from_json(text: str) -> tuple[Cell, Settings]:
    """What :func:`to_json` was given."""
    cell, values = json.loads(text)
    paths = {name: values[name] and Path(values[name]) for name in ("results", "data_dir", "work", "vectors")}
    return Cell.from_dict(cell), Settings(**values | paths | {"plugins": tuple(map(Path, values["plugins"]))})


def lead(cell: Cell, settings: Settings) -> None:
    """Have Lightning start further processes of this cell by this module; to be called in the
    cell's own process."""
    sys.argv = ["archbench", to_json(cell, settings)]
    sys.modules["__main__"].__spec__ = importlib.util.find_spec("harness.running.follower")
    os.environ["PYTHONSAFEPATH"] = "1"  # `python -m` would look for modules in the folder it is started in first
