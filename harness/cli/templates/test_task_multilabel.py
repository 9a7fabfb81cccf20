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


def test_a_line_has_its_labels_and_a_text(tmp_path):
    found = rows(tmp_path, "labels\ttext\nsound price\ta loud bill\n\tall is well\n")
    assert [(row["text"], row["labels"]) for row in found] == [("a loud bill", ["price", "sound"]), ("all is well", [])]


def test_a_label_that_is_not_known_is_named_with_its_line(tmp_path):
    with pytest.raises(DataError, match="line 2: label 'smell'"):
        rows(tmp_path, "labels\ttext\nsmell\ta loud bill\n")


def test_it_keeps_the_contract():
    failed = [result for result in check(ENTRY) if not result.passed]
    assert not failed, failed
