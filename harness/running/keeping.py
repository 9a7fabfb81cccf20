"""Kept models: what a cell learnt goes to the results folder, with its origin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness import registry
from harness.records import Cell
from harness.records.code_digest import architecture_of_cell
from harness.records.registered import seen
from harness.registry import ArchitectureEntry
from harness.running.usage import since
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
    entered: tuple[float, float],
    took: tuple[float, float],
) -> None:
    """Keep what a cell learnt, in the results folder; with ``--refit`` what it learns ``anew`` of
    all rows, if there is time since it ``entered`` (:func:`~harness.running.usage.clocks`): on as
    many rows as before that ``took`` so many seconds of the clock and of the processor.

    The record is worth more: a disk that is full, a state that cannot be kept and a second training
    that fails are told in the log, and the cell goes on. Where the model is kept as it was scored,
    it says why, so that no later run trains the cell again in vain.
    """
    ways, reason = [anew, made] if settings.refits(cell) else [made], None
    if len(ways) > 1 and (reason := _no_time(settings, since(entered), took)):
        print(f"not refitted: {reason}")
        ways = [made]
    for way in ways:
        try:
            model = way()
            if way is made:
                model.description.origin.not_refitted = reason
            model.write(storage.place(settings.results, cell.key))
            return
        except Exception as error:  # a plugin's own methods give its state
            reason = f"{type(error).__name__}: {error}"
            print(f"not {'kept' if way is made else 'refitted'}: {reason}")


def _no_time(settings: Settings, spent: tuple[float, float], took: tuple[float, float]) -> str | None:
    """The limit that a second training would pass, in words; None where it would pass none."""
    for (so_far, limit, words), (once, *_) in zip(settings.time_limits(spent), settings.time_limits(took), strict=True):
        if so_far + SLOWER * once > limit:
            return f"after {so_far:.0f} s, a second training would pass the cell's limit of {words}"
    return None


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
        sees=fields.get("sees"),
        refitted=refitted,
        code=architecture_of_cell(cell),
        manners=task.description.manners if issubclass(task, OwnTask) else {},
    )


def of_parents(parents: Parents, cell: Cell) -> dict[str, Any]:
    """Fields of a record that come from the parents of its cell."""
    if not parents.models:
        return {}
    return {"lineage": parents.ancestors, "sees": sorted({*(seen(cell) or ()), *parents.sees}), **parents.sources}


def part_of(entry: ArchitectureEntry, values: dict[str, Any]) -> Part:
    return Part(architecture=entry.id, version=entry.version, settings=values)
