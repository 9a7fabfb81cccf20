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
    (folder / "my_task" / "test.jsonl").write_text(text, encoding="utf-8")
    return list(registry.load(ENTRY)(ENTRY).local(folder, "test"))


def test_a_line_is_a_question_with_its_facts(tmp_path):
    found = rows(tmp_path, '{"facts": ["Ann sang."], "question": "Who?", "answer": "Ann", "skill": "who"}\n')
    assert found == [{"id": "test-1", "facts": ["Ann sang."], "question": "Who?", "answer": "Ann", "skill": "who"}]


@pytest.mark.parametrize("text", ['{"facts": []}', "Ann sang."])
def test_a_fault_is_named_with_its_line(tmp_path, text):
    with pytest.raises(DataError, match="line 1: expected a JSON object"):
        rows(tmp_path, text)


def test_it_keeps_the_contract():
    failed = [result for result in check(ENTRY) if not result.passed]
    assert not failed, failed
