"""Memory that the fit of a system without gradient training needs, beside that which there is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import psutil

from harness import registry
from harness.records import Cell
from harness.running.pending import Planned
from harness.running.preflight import Reading
from harness.settings import Limits


def too_large(cells: Iterable[Cell], readings: Mapping[str, Reading], most: int | None) -> list[Planned]:
    """The cells of systems without gradient training that need more memory than there is, with the
    reason: they hold all of their training rows and counts at once. ``most`` is a limit in MiB;
    None for what is free here."""
    free = psutil.virtual_memory().available if most is None else most * 2**20
    of = "free here" if most is None else "the limit (--memory-limit)"
    found = []
    for cell in cells:
        needed = _needed(cell, readings.get(cell.task))
        if needed > free:
            reason = f"its fit needs about {needed / 2**30:.1f} GiB of memory, and {free / 2**30:.1f} GiB are {of}"
            found.append(Planned(cell, reason))
    return found


def _needed(cell: Cell, reading: Reading | None) -> float:
    """Bytes that a fit without gradient training is estimated to take; 0 for any other, and where
    the size of its data is not known."""
    needed = getattr(registry.load(registry.entry("architectures", cell.architecture)), "memory_needed", None)
    if needed is None or reading is None:
        return 0.0
    rows = reading.counts.get("train", 0)
    share = min(1.0, (Limits.of(cell.hyperparameters).labelled or rows) / max(1, rows))
    return float(needed(round(share * reading.train_bytes), cell.hyperparameters))
