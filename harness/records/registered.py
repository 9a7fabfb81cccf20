"""The registry's words on the architecture and the task of a cell, as its record keeps them."""

from __future__ import annotations

from typing import get_args

from harness import registry
from harness.errors import RegistryError
from harness.records.blocks import Registered
from harness.records.cell import Cell
from harness.settings import Limits
from harness.task import WITHOUT_LABELS, Split


def registered(cell: Cell) -> Registered | None:
    """Names, family, kind, paper, type, inputs, protocol and sizes of what a cell is of; None where
    neither is registered."""
    found: Registered = {}
    try:
        architecture = registry.entries("architectures").get(cell.architecture)
        task = registry.entries("tasks").get(cell.task)
    except RegistryError:  # one id in two files: whoever asked for the cell was told
        return None
    if architecture:
        found["architecture"] = {
            "name": architecture.name,
            "family": architecture.family,
            "kind": architecture.kind,
            "paper": architecture.paper,
            "year": architecture.year,
        }
    if task:
        try:
            inputs = list(registry.load(task).inputs)
        except RegistryError:  # the file is broken, as the record's error says
            inputs = []
        sizes = {split: task.sizes[split] for split in get_args(Split) if isinstance(task.sizes.get(split), int)}
        found["task"] = {
            "name": task.name,
            "type": task.type,
            "inputs": inputs,
            "protocol": task.protocol,
            "sizes": sizes,
            "metrics": list(task.metrics),
            "main_metric": task.main_metric,
        }
    return found or None


def seen(cell: Cell) -> list[str] | None:
    """Data that a cell's training uses beside the labelled training examples, that of what a regime
    wraps and of the parents that it names among it; None where its architecture is not
    registered."""
    try:
        entries = registry.entries("architectures")
    except RegistryError:
        return None
    if cell.architecture not in entries:
        return None
    wrapped, parents = str(cell.hyperparameters.get("wraps")), (each["architecture"] for each in cell.parents.values())
    sees = {each for id in (cell.architecture, wrapped, *parents) if id in entries for each in entries[id].sees}
    if Limits.of(cell.hyperparameters).labels is None:
        sees.discard(WITHOUT_LABELS)
    return sorted([*sees, *(f"training rows of {task}" for task in cell.companions)])
