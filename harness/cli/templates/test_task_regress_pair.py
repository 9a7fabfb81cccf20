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
    (folder / "my_task" / "test.tsv").write_text(text, encoding="utf-8")
    return list(registry.load(ENTRY)(ENTRY).local(folder, "test"))


def test_a_line_is_a_score_and_two_texts(tmp_path):
    found = rows(tmp_path, "score\tfirst\tsecond\n1.5\tred blue\tblue\n")
    assert found == [{"id": "test-2", "first": "red blue", "second": "blue", "score": 1.5}]


def test_a_score_that_is_no_number_is_named_with_its_line(tmp_path):
    with pytest.raises(DataError, match="line 2: score 'low'"):
        rows(tmp_path, "score\tfirst\tsecond\nlow\tred\tblue\n")


def test_it_keeps_the_contract():
    failed = [result for result in check(ENTRY) if not result.passed]
    assert not failed, failed
