"""One file for each split of a task of plain text."""

from __future__ import annotations

import pytest

from harness import registry
from harness.errors import DataError
from tasks.text_mix import TextMix
from tools import plain_text


@pytest.fixture
def mix(monkeypatch):
    """The mix, whose rows of the other tasks' files are those of its mini corpus."""
    entry = registry.entry("tasks", "text_mix")
    made = TextMix._rows
    monkeypatch.setattr(TextMix, "_rows", lambda self, split, tier, folder: made(self, split, "mini", None))
    return TextMix(entry)


def test_the_rows_of_the_files_are_those_of_the_task(mix, tmp_path, monkeypatch):
    """Whoever carries the files to another machine trains on other texts."""
    wanted = {split: mix.read(split, "local", tmp_path) for split in ("train", "dev", "test")}
    assert all(wanted.values())
    assert plain_text.main(["text_mix", "--data-dir", str(tmp_path), "--out", str(tmp_path)]) == 0
    monkeypatch.setattr(TextMix, "_rows", lambda *_: pytest.fail("the files of the other tasks are read"))
    assert {split: mix.read(split, "local", tmp_path) for split in wanted} == wanted


@pytest.mark.parametrize("line", ["{", "[]", '{"id": "a-0"}', '{"id": 1, "text": "x"}'])
def test_a_line_that_is_no_row_is_named(mix, tmp_path, line):
    (tmp_path / "text_mix").mkdir()
    (tmp_path / "text_mix" / "dev.jsonl").write_text('{"id": "a-0", "text": "x"}\n' + line)
    with pytest.raises(DataError, match=r"dev.jsonl, line 2: .* expected a JSON object with id and text"):
        mix.read("dev", "local", tmp_path)


def test_a_task_of_another_type_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit):
        plain_text.main(["sst2", "--data-dir", str(tmp_path), "--out", str(tmp_path)])
    assert "sst2 is of type classify, not text" in capsys.readouterr().err
