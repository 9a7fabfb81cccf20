"""Cells as ``archbench run`` plans them, on the mini tier."""

from __future__ import annotations

from typing import Any

from harness import registry
from harness.records import Cell
from harness.running import grid


def tiny_sizes(architecture: str, **others: Any) -> list[str]:
    """The ``-o`` options that give an architecture the sizes of its contract check, and others."""
    sizes = {**registry.entry("architectures", architecture).tiny, **others}
    return [f"{architecture}.{name}={value!r}" for name, value in sizes.items()]


def planned_cell(
    architecture: str, task: str, *overrides: str, protocol: str = "smoke", max_train: int | None = 100, **more: Any
) -> Cell:
    """The cell that ``archbench run`` would make."""
    entries = [registry.entry("architectures", architecture)], [registry.entry("tasks", task)]
    [planned] = grid.plan(
        *entries, tier="mini", protocol=protocol, seeds=[0], overrides=overrides, max_train=max_train, **more
    )
    assert planned.reason is None
    return planned.cell
