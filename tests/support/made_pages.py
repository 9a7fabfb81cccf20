"""Boards of hand-made records and registered names, and pages as text, for tests of one kind of
page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import jinja2
import pytest

import harness.leaderboard
from harness import registry
from harness.leaderboard.board import Board, sections_of
from harness.leaderboard.pages.page import Page
from harness.leaderboard.published import Published
from harness.records import Store


def architecture(id: str, name: str, *, family: str = "recurrent", year: int = 2015, **options: Any) -> registry.Entry:
    """A registered architecture whose file need not exist."""
    file = options.pop("file", Path(family) / f"{id}.py")
    known = {
        "name": name,
        "kind": "text",
        "paper": "Somebody 2015",
        "source": "survey",
        "year": year,
        "deviations": (),
        "version": 1,
    }
    return registry.Entry(
        id, "architectures", file, options.pop("class_name", "Model"), MappingProxyType(known | options)
    )


def task(id: str, type: str, *metrics: str) -> registry.Entry:
    """A registered task with 1,000 training examples; the first metric is the main one."""
    known = {
        "name": id.upper(),
        "type": type,
        "metrics": metrics,
        "main_metric": metrics[0],
        "sizes": {"train": 1000, "test": 100},
    }
    return registry.Entry(
        id, "tasks", Path(f"{id}.py"), "Adapter", MappingProxyType(known | {"epochs": 5, "protocol": "x", "version": 1})
    )


def register_alone(
    monkeypatch: pytest.MonkeyPatch, architectures: Sequence[registry.Entry], tasks: Sequence[registry.Entry]
) -> None:
    """Have these registered and nothing else, whatever the repository holds."""
    entries = {"architectures": architectures, "tasks": tasks, "problems": registry.entries("problems").values()}
    monkeypatch.setattr(registry, "entries", lambda sort: {entry.id: entry for entry in entries[sort]})
    monkeypatch.setattr(registry, "broken", lambda sort: {})


def board_of(
    store: Store, architectures: Sequence[registry.Entry], tasks: Sequence[registry.Entry], *published: Published
) -> Board:
    """The board of the records in ``store``, with these names and published values and no
    others."""
    records = list(store.all())
    names = [{entry.id: entry for entry in entries} for entries in (architectures, tasks)]
    return Board(store, records, list(published), *names, [], sections_of(records, names[1]))


def html_of(page: Page) -> str:
    """A page as ``leaderboard.py`` writes it, without navigation."""
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(harness.leaderboard.__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    frame = {"navigation": [], "task_pages": [], "exports": [], "title": page.title, "here": page.file}
    return templates.get_template(page.template).render(page.parts | frame)
