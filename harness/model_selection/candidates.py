"""Architectures to try on a user's rows: those that fit, the cheapest first."""

from __future__ import annotations

import math
from typing import NamedTuple

from harness import registry
from harness.registry import ArchitectureEntry, TaskEntry
from harness.running import fitting, grid
from harness.running.estimate import UNTRAINED, measured_speeds
from harness.settings import TrainingSettings

PROTOCOL = "equal"
PILOTS = 1.3
"""Steps of a training with its pilots, over those without."""


class Candidate(NamedTuple):
    """An architecture to try. ``work`` is the seconds that its training would take on the machine
    of :data:`harness.running.estimate.SPEEDS`; infinite where nobody measured it."""

    entry: ArchitectureEntry
    work: float

    @property
    def is_floor(self) -> bool:
        """True for answers that need no model, such as the most frequent class."""
        return self.entry.kind == "floor"

    @property
    def is_trained(self) -> bool:
        """True for what is trained by gradients and was measured."""
        return self.entry.kind not in UNTRAINED and math.isfinite(self.work)


def candidates(pattern: str, task: TaskEntry, rows: int) -> tuple[list[Candidate], dict[str, str]]:
    """The architectures that fit a task with so many rows for training, floors first and then by
    their work; and the reason of each that is left out, by id.

    Raises :class:`~harness.errors.UnknownName` for a pattern that fits nothing.
    """
    chosen = {entry.id for entry in registry.match("architectures", pattern)}
    left_out: dict[str, str] = {}
    usable: list[ArchitectureEntry] = []
    for entry in registry.entries("architectures").values():
        if entry.kind != "floor" and entry.id not in chosen:
            left_out[entry.id] = f"not chosen by -a {pattern}"
        elif entry.sees:
            left_out[entry.id] = f"it learns from {' and '.join(entry.sees)} too, which new rows do not have"
        else:
            good, errors = fitting.loadable([entry])
            usable += good
            if errors:
                left_out[entry.id] = errors[0]
    speeds = measured_speeds()
    found = []
    for planned in grid.plan(usable, [task], tier="own", protocol=PROTOCOL, seeds=[0]):
        entry = registry.entry("architectures", planned.cell.architecture)
        if planned.reason is None:
            rate = speeds.get(entry.id, 0.0)
            read = _read(entry, TrainingSettings.from_dict(planned.cell.hyperparameters["training"]), rows)
            found.append(Candidate(entry, read / rate if rate else math.inf))
        elif entry.kind != "floor":
            left_out[entry.id] = planned.reason
    return sorted(found, key=lambda each: (not each.is_floor, each.work)), left_out


def _read(entry: ArchitectureEntry, training: TrainingSettings, rows: int) -> float:
    """Training examples that an architecture reads in all."""
    if entry.kind in UNTRAINED:
        return rows
    return PILOTS * max(training.epochs * rows, training.min_steps * training.batch_size)
