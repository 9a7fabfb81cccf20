"""Own data in a folder, and the task that a TOML file makes of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness import registry
from harness.user_data.task import OwnTask

HEAD = 'type = "classify"\n[data]\nall = "reviews.csv"\n[columns]\ntext = "review"\nlabel = "stars"\n'
"""A description that says what must be said, and no more."""


@pytest.fixture(autouse=True)
def no_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Descriptions of one test are not those of the next."""
    monkeypatch.setattr("harness.registry.finding._plugins", [])


def reviews(count: int, header: str = "review,stars\n") -> str:
    """A CSV file of so many different reviews of two kinds."""
    return header + "".join(f"film {n} was {('good', 'bad')[n % 2]},{('pos', 'neg')[n % 2]}\n" for n in range(count))


@pytest.fixture
def own(tmp_path: Path) -> Callable[..., OwnTask]:
    """The task of a TOML text beside files, which are given by name (``reviews_csv``) as text or
    bytes."""

    def make(toml: str = HEAD, **files: str | bytes) -> OwnTask:
        for name, content in files.items():
            stem, _, ending = name.rpartition("_")
            data = content.encode() if isinstance(content, str) else content
            (tmp_path / f"{stem}.{ending}").write_bytes(data)
        file = tmp_path / "reviews.toml"
        file.write_text(toml, encoding="utf-8")
        [entry] = registry.match("tasks", str(file))
        return registry.load(entry)(entry)

    return make
