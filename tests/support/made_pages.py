"""Boards of hand-made records and registered names, and pages as text, for tests of one kind of
page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness import registry
from harness.leaderboard.board import Board
from harness.leaderboard.pages.architecture_page import architecture_page
from harness.leaderboard.pages.page import Page, templates
from harness.leaderboard.published import Published
from harness.records import Store
from harness.registry import ArchitectureEntry, TaskEntry, lookup


def architecture(
    id: str, name: str, *, family: str = "recurrent", year: int = 2015, **options: Any
) -> ArchitectureEntry:
    """A registered architecture whose file need not exist."""
    file = options.pop("file", Path(family) / f"{id}.py")
    known = dict(name=name, kind="text", paper="Somebody 2015", source="survey", year=year)
    return ArchitectureEntry(id=id, file=file, class_name=options.pop("class_name", "Model"), **known | options)


def task(id: str, type: str, *metrics: str) -> TaskEntry:
    """A registered task with 1,000 training examples; the first metric is the main one."""
    known = dict(name=id.upper(), type=type, metrics=metrics, main_metric=metrics[0], epochs=5, protocol="x")
    return TaskEntry(id=id, file=Path(f"{id}.py"), class_name="Adapter", sizes={"train": 1000, "test": 100}, **known)


def register_alone(
    monkeypatch: pytest.MonkeyPatch, architectures: Sequence[ArchitectureEntry], tasks: Sequence[TaskEntry]
) -> None:
    """Have these registered and nothing else, whatever the repository holds."""
    problems = registry.entries("problems").values()
    entries = {"architectures": architectures, "tasks": tasks, "problems": problems, "metrics": ()}
    for module in (registry, lookup):
        monkeypatch.setattr(module, "entries", lambda sort: {entry.id: entry for entry in entries[sort]})
    monkeypatch.setattr(registry, "broken", lambda sort: {})


def board_of(
    store: Store, architectures: Sequence[ArchitectureEntry], tasks: Sequence[TaskEntry], *published: Published
) -> Board:
    """The board of the records in ``store``, with these names and published values and no
    others."""
    records = list(store.all())
    names = [{entry.id: entry for entry in entries} for entries in (architectures, tasks)]
    return Board(store, records, list(published), *names, [])


def architecture_pages(board: Board) -> list[Page]:
    """The pages of all architectures, in the order of the tables."""
    return [architecture_page(board, id) for id in sorted(board.by_architecture, key=board.order)]


def cells(pages: Sequence[Page]) -> list[list[str]]:
    """The rows of the one table of the one page: the name, and the first line of each cell."""
    (table,) = pages[0].parts["tables"]
    return [[row.name, *(cell[0].text for cell in row.cells)] for row in table.blocks[0].rows]


def html_of(page: Page) -> str:
    """A page as ``leaderboard.py`` writes it, without navigation."""
    frame = {"navigation": [], "task_pages": [], "exports": [], "title": page.title, "here": page.file}
    return templates().get_template(page.template).render(page.parts | frame)
