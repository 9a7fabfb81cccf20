"""Kept models: what a cell learnt goes to the results folder, with its origin."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

from harness import registry
from harness.records import Cell
from harness.registry import ArchitectureEntry
from harness.running.worker_settings import Settings
from harness.saved_models import storage
from harness.saved_models.folder import Origin, Part
from harness.saved_models.model import KeptModel
from harness.saved_models.parents import Parents
from harness.user_data.task import OwnTask

SLOWER = 2.5
"""Seconds of a second training on all rows over those on the first's rows; rather too many."""


def keep(
    cell: Cell,
    settings: Settings,
    made: Callable[[], KeptModel],
    anew: Callable[[], KeptModel],
    entered: float,
    took: float,
) -> None:
    """Keep what a cell learnt, in the results folder; with ``--refit`` what it learns ``anew`` of
    all rows, if there is time: on as many rows as before that takes so many seconds.

    The record is worth more: a disk that is full, a state that cannot be kept and a second training
    that fails are told in the log, and the cell goes on.
    """
    ways = [anew, made] if settings.refits(cell) else [made]
    spent = time.perf_counter() - entered
    if len(ways) > 1 and spent + SLOWER * took > min(settings.timeout or math.inf, settings.cpu_limit or math.inf):
        print(f"not refitted: after {spent:.0f} s, a second training would pass the cell's limit")
        ways = [made]
    for way in ways:
        try:
            way().write(storage.place(settings.results, cell.key))
            return
        except Exception as error:  # a plugin's own methods give its state
            print(f"not {'kept' if way is made else 'refitted'}: {type(error).__name__}: {error}")


def origin(
    cell: Cell, fields: dict[str, Any], seconds: float, objective: str | None = None, refitted: int | None = None
) -> Origin:
    """The origin of a model, by the fields of its cell's record and the seconds of its training."""
    task = registry.load(registry.entry("tasks", cell.task))
    return Origin(
        key=cell.key,
        cell=cell.to_dict(),
        data=fields["data"],
        predictions=fields["predictions"]["sha256"],
        spent=fields["spent"],
        seconds=seconds,
        objective=objective,
        lineage=fields.get("lineage", []),
        refitted=refitted,
        manners=task.description.manners if issubclass(task, OwnTask) else {},
    )


def of_parents(parents: Parents) -> dict[str, Any]:
    """Fields of a record that come from the parents of its cell."""
    return {"lineage": parents.ancestors, **parents.sources} if parents.models else {}


def part_of(entry: ArchitectureEntry, values: dict[str, Any]) -> Part:
    return Part(architecture=entry.id, version=entry.version, settings=values)
