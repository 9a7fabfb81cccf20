"""My task: its reader against small files, and the contract of a task."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import registry
from harness.contract.tasks import check
from harness.errors import DataError
from harness.task import Row

registry.add_plugin(Path(__file__).with_name("my_task.py"))
ENTRY = registry.entry("tasks", "my_task")


def rows(folder: Path, text: str) -> list[Row]:
    """Rows that are read from a test file with this text."""
    (folder / "my_task").mkdir()
    (folder / "my_task" / "test.txt").write_text(text, encoding="utf-8")
    return list(registry.load(ENTRY)(ENTRY).local(folder, "test"))


def test_a_line_is_a_text(tmp_path):
    assert [row["text"] for row in rows(tmp_path, "a b\nc\n")] == ["a b", "c"]


def test_an_empty_line_is_named(tmp_path):
    with pytest.raises(DataError, match="line 2: empty"):
        rows(tmp_path, "a b\n\nc\n")


def test_it_keeps_the_contract():
    failed = [result for result in check(ENTRY) if not result.passed]
    assert not failed, failed
