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


def test_sentences_end_at_an_empty_line(tmp_path):
    found = rows(tmp_path, "in O\nParis B-LOC\n\nhello O\n")
    assert [(row["text"], row["tags"]) for row in found] == [(["in", "Paris"], ["O", "B-LOC"]), (["hello"], ["O"])]


def test_an_unknown_tag_is_named_with_its_line(tmp_path):
    with pytest.raises(DataError, match="line 2: tag 'LOC'"):
        rows(tmp_path, "in O\nParis LOC\n")


def test_it_keeps_the_contract():
    failed = [result for result in check(ENTRY) if not result.passed]
    assert not failed, failed
