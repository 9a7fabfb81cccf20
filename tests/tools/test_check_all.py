"""The table of all architectures at default size: who is asked again, and what is an error."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from harness import registry
from tests.support import killed_rows
from tools import check_all


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, int]]:
    """Asked pairs with their minutes; ``dan`` learns in fifteen, ``bilstm_crf`` never, ``cnn`` and
    ``hmm`` at once."""
    asked: list[tuple[str, str, int]] = []

    def row_of(id: str, task: str, minutes: int) -> dict[str, str]:
        asked.append((id, task, minutes))
        learns = id in ("cnn", "hmm") or (id == "dan" and minutes == 15)
        return dict.fromkeys(check_all.COLUMNS, "") | {
            "architecture": id, "task": task, "minutes": str(minutes), "word": "learns" if learns else "chance"
        }  # fmt: skip

    monkeypatch.setattr(check_all, "checked", lambda pairs, minutes, jobs: [row_of(*pair, minutes) for pair in pairs])
    return asked


def test_a_check_that_is_killed_is_a_row_and_ends_no_other(monkeypatch):
    """It ended the command in a traceback, and was tried first again by each further call."""
    monkeypatch.setattr(check_all, "row_of", killed_rows.row_of)
    found = [*check_all.checked([("dan", "sst2"), ("cnn", "sst2")], 2, 1)]
    assert [(row["architecture"], row["word"]) for row in found] == [("dan", "failed"), ("cnn", "learns")]
    assert found[0].keys() == {*check_all.COLUMNS} and "killed" in found[0]["note"]


def rows(table: Path) -> dict[str, str]:
    with table.open(newline="") as file:
        return {
            f"{row['architecture']} {row['task']}": f"{row['word']} {row['minutes']}" for row in csv.DictReader(file)
        }


def test_a_classifier_is_asked_about_rare_classes_too(told, tmp_path):
    """On tasks with as many texts of each class one passes that says a rare class of every text."""
    check_all.main(["cnn", "hmm", "--table", str(tmp_path / "table.csv")])
    assert sorted(told) == [("cnn", "ohsumed", 2), ("cnn", "sst2", 2), ("hmm", "conll2003_pos", 2)]


def test_a_translator_is_asked_to_translate(told, tmp_path):
    """On recordings, the first that it fits, Sutskever's network would have to learn to hear."""
    check_all.main(["seq2seq", "--table", str(tmp_path / "table.csv")])
    assert {task for _, task, _ in told} == {"multi30k"}


def test_what_stands_at_chance_gets_more_time_once(told, tmp_path):
    table = tmp_path / "table.csv"
    assert check_all.main(["hmm", "dan", "bilstm_crf", "--table", str(table)]) == 0
    assert [minutes for _, _, minutes in told] == [2] * 4 + [15] * 3
    assert rows(table) == {
        "bilstm_crf conll2003_ner": "chance 15",
        "dan ohsumed": "learns 15",
        "dan sst2": "learns 15",
        "hmm conll2003_pos": "learns 2",
    }


def test_a_further_call_goes_on_where_one_stopped(told, tmp_path):
    table = tmp_path / "table.csv"
    check_all.main(["hmm", "--table", str(table)])
    check_all.main(["hmm", "bilstm_crf", "--table", str(table)])
    assert [(id, minutes) for id, _, minutes in told] == [("hmm", 2), ("bilstm_crf", 2), ("bilstm_crf", 15)]
    check_all.main(["hmm", "--table", str(table), "--anew"])
    assert len(told) == 4 and told[3][0] == "hmm"


def test_too_many_architectures_at_chance_are_an_error(told, tmp_path):
    """One that stands at chance twice counts once."""
    ids = [id for id, entry in registry.entries("architectures").items() if entry.kind != "floor"]
    many = [id for id in ids if id not in ("cnn", "hmm", "dan")][: check_all.MOST_AT_CHANCE + 1]
    assert check_all.main([*many[:-1], "--table", str(tmp_path / "few.csv")]) == 0
    assert check_all.main([*many, "--table", str(tmp_path / "many.csv")]) == 1


def test_a_task_that_is_registered_later_does_not_make_all_anew(told, tmp_path):
    """Its name may come before that of the task on which the table has an architecture."""
    table = tmp_path / "table.csv"
    columns, row = ",".join(check_all.COLUMNS), "hmm,conll2003_ner,f1,learns,0.0,0.9,0.9,3,9,2,"
    table.write_text(f"{columns}\n{row}\n", encoding="utf-8")
    assert check_all.main(["hmm", "--table", str(table)]) == 0
    assert not told and row in table.read_text(encoding="utf-8")
