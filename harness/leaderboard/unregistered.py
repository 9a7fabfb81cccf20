"""Architectures and tasks that are not registered here, as their records tell of them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import get_args

from harness.records import Record
from harness.registry import ArchitectureEntry, Entry, TaskEntry
from harness.task import Split


def is_installed(entry: Entry) -> bool:
    """True for what the registry knows; an entry made from records has no class."""
    return bool(entry.class_name)


def recorded_architectures(records: Iterable[Record]) -> dict[str, ArchitectureEntry]:
    """Architectures by id, each as the last of its records that tells of it."""
    last = {r.architecture: (r, told) for r in records if (told := (r.registered or {}).get("architecture"))}
    return {
        id: ArchitectureEntry(
            id=id,
            file=Path(_text(told.get("family")) or "unknown", f"{id}.py"),
            class_name="",
            name=_text(told.get("name")) or id,
            kind=_text(told.get("kind")),
            paper=_text(told.get("paper")),
            source="",
            year=year if isinstance(year := told.get("year"), int) else 0,
            version=record.architecture_version,
        )
        for id, (record, told) in last.items()
    }


def recorded_tasks(records: Iterable[Record]) -> dict[str, TaskEntry]:
    """Tasks by id, each as the last of its records that tells of it."""
    last = {r.task: (r, told) for r in records if (told := (r.registered or {}).get("task"))}
    return {
        id: TaskEntry(
            id=id,
            file=Path(f"{id}.py"),
            class_name="",
            name=_text(told.get("name")) or id,
            type=_text(told.get("type")),
            metrics=tuple(metrics) if isinstance(metrics := told.get("metrics"), list) else (),
            main_metric=_text(told.get("main_metric")) or record.main_metric or "accuracy",
            sizes=_by_split(told.get("sizes")),
            epochs=0,
            protocol=_text(told.get("protocol")),
            version=record.task_version,
        )
        for id, (record, told) in last.items()
    }


def _by_split(sizes: object) -> dict[str, int]:
    return {split: sizes[split] for split in get_args(Split) if split in sizes} if isinstance(sizes, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
