"""Own data to try, and cells that run in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness import registry
from harness.records import Store
from harness.running import preflight as preflight_module
from harness.running import reading, worker
from harness.running.engines import local
from harness.user_data.task import OwnTask

HEAD = 'type = "classify"\n[data]\nall = "reviews.csv"\n[columns]\ntext = "review"\nlabel = "stars"\n'
"""A description of the reviews, divided as `new-task` does by default."""


def reviews(count: int) -> str:
    """A CSV file of so many different reviews of two kinds; one in seven says the contrary."""
    lines = ["review,stars"]
    for number in range(count):
        good = number % 2
        word = ("dull", "warm")[good if number % 7 else 1 - good]
        lines.append(f"film {number} was {word},{('neg', 'pos')[good]}")
    return "\n".join([*lines, ""])


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of the user's. Data are read and cells are run in this process, and no ruler is
    measured."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("harness.registry.finding._plugins", [])
    monkeypatch.setattr(worker, "_ruler", lambda cell, settings: None)

    def run(cells, settings, *, started, ended, **_):
        records = []
        for cell in cells:
            record = worker.run_cell(cell, settings)
            Store(settings.results).write(record)
            ended(record)
            records.append(record)
        return records

    def ask(module, tasks, tier, folder, timeout):
        return {task.id: reading.read(task.id, "own", None) for task in tasks}, ""

    monkeypatch.setattr(local, "run", run)
    monkeypatch.setattr(preflight_module, "ask", ask)


@pytest.fixture
def own() -> Callable[..., OwnTask]:
    """The task of a description of reviews in the user's folder."""

    def make(content: str, toml: str = HEAD) -> OwnTask:
        Path("reviews.csv").write_text(content, encoding="utf-8")
        Path("reviews.toml").write_text(toml, encoding="utf-8")
        [entry] = registry.match("tasks", "./reviews.toml")
        return registry.load(entry)(entry)

    return make
