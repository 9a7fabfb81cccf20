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


def test_answers_are_found_in_their_passage(tmp_path):
    found = rows(tmp_path, '{"passage": "Ann has the key.", "question": "What has Ann?", "answers": ["the key"]}\n')
    assert found[0]["answers"] == {"text": ["the key"], "start": [8]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"passage": "Ann sang.", "question": "Who?", "answers": ["Ben"]}', "line 1: the answer 'Ben'"),
        ('{"passage": "Ann sang."}', "line 1: expected a JSON object"),
        ("Ann sang.", "line 1: expected a JSON object"),
    ],
)
def test_a_fault_is_named_with_its_line(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        rows(tmp_path, text)


def test_it_keeps_the_contract():
    failed = [result for result in check(ENTRY) if not result.passed]
    assert not failed, failed
