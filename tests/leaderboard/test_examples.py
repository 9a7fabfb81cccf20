"""The texts of test examples beside results: of the right data, from where the reader says, and
from nowhere else."""

from __future__ import annotations

import pytest

from harness import registry
from harness.leaderboard import examples as module
from harness.leaderboard.board import Board
from harness.leaderboard.examples import ExampleReader, Examples, adapter, by_unit, shown, text_columns
from harness.records import Store
from harness.task import fingerprint
from tests.support.made_pages import board_of
from tests.support.made_records import record

TASKS = [registry.entry("tasks", id) for id in ("sst2", "wikiqa")]
HEADER = "QuestionID\tQuestion\tDocumentID\tDocumentTitle\tSentenceID\tSentence\tLabel"
PAIRS = [("Q1", "who ?", "D1-0", "Ann did .", "1"), ("Q1", "who ?", "D1-1", "It rained .", "0")]


@pytest.fixture
def data_dir(tmp_path):
    """Official files of WikiQA with one question."""
    folder = tmp_path / "data" / "wikiqa"
    folder.mkdir(parents=True)
    lines = [f"{q}\t{text}\tD1\tTitle\t{s}\t{sentence}\t{label}" for q, text, s, sentence, label in PAIRS]
    (folder / "WikiQA-test.tsv").write_text("\n".join([HEADER, *lines, ""]))
    return folder.parent


def read(folder, made, data_dir=None) -> tuple[Board, Examples]:
    """Examples of the task of one record."""
    store = Store(folder / "results")
    store.write(made)
    board = board_of(store, [], TASKS)
    (section,) = board.sections
    return board, ExampleReader(data_dir).test(board, section, made.task)


def test_a_generated_corpus_is_read_without_a_folder(tmp_path):
    rows = adapter(TASKS[0]).read("test", "mini")
    board, found = read(tmp_path, record(score=0.5, tier="mini", data={"test": fingerprint(rows)}))
    assert (found.rows, board.notices) == (rows, [])
    assert "generated" in found.about


def test_official_files_are_read_for_who_names_their_folder_alone(tmp_path, data_dir, monkeypatch):
    """A page is published, and most licences do not allow to publish the texts."""
    digest = fingerprint(adapter(TASKS[1]).read("test", "local", data_dir))
    made = record(task="wikiqa", score={"map": 0.5}, data={"test": digest})
    board, found = read(tmp_path, made, data_dir)
    assert [row["id"] for row in found.rows] == ["Q1-D1-0", "Q1-D1-1"]
    monkeypatch.setattr(module, "adapter", lambda _: pytest.fail("a file is read"))
    monkeypatch.setenv("ARCHBENCH_DATA", str(data_dir))
    board, found = read(tmp_path, made)
    assert found.rows is None and "--data-dir" in found.about
    assert board.notices == []


def test_texts_of_other_data_are_not_shown(tmp_path, data_dir):
    """They would stand beside answers to something else."""
    made = record(task="wikiqa", score={"map": 0.5}, data={"test": "f" * 64})
    board, found = read(tmp_path, made, data_dir)
    assert found.rows is None
    assert "those of the results ffffffffffff" in found.about
    assert len(board.notices) == 1


def test_files_that_cannot_be_read_are_a_notice_without_the_reader_s_folders(tmp_path, data_dir):
    (data_dir / "wikiqa" / "WikiQA-test.tsv").unlink()
    board, found = read(tmp_path, record(task="wikiqa", score={"map": 0.5}, data={"test": "f" * 64}), data_dir)
    assert found.rows is None and "WikiQA-test.tsv" in found.about
    (notice,) = board.notices
    assert notice.startswith("no texts of wikiqa, tier local: ")
    assert str(tmp_path) not in notice + found.about


@pytest.mark.parametrize(("task", "tier", "words"), [("sst2", "hub", "network"), ("theirs", "local", "not installed")])
def test_the_network_and_what_is_not_installed_are_not_asked(tmp_path, data_dir, task, tier, words):
    _, found = read(tmp_path, record(task=task, score=0.5, tier=tier), data_dir)
    assert found.rows is None and words in found.about


def test_a_split_is_read_once_for_all_sections(tmp_path, monkeypatch):
    rows = adapter(TASKS[0]).read("test", "mini")
    calls = []
    monkeypatch.setattr(module, "adapter", lambda entry: calls.append(entry) or adapter(entry))
    store = Store(tmp_path)
    for protocol in ("equal", "paper"):
        store.write(record(score=0.5, tier="mini", protocol=protocol, data={"test": fingerprint(rows)}))
    board, reader = board_of(store, [], TASKS), ExampleReader()
    assert [reader.test(board, section, "sst2").rows for section in board.sections] == [rows, rows]
    assert len(calls) == 1


def test_units_are_examples_or_the_questions_that_candidates_belong_to():
    rank = registry.entry("problems", "rank")
    rows = [
        {"id": "a", "group": "q", "first": "who ?", "second": "Ann"},
        {"id": "b", "group": "q", "first": "who ?", "second": "Bob"},
    ]
    assert by_unit(["q"], rows, rank) == [rows]
    assert by_unit(["b", "a"], rows, rank) == [rows[1:], rows[:1]]
    assert by_unit(["q", "p"], rows, rank) is None
    assert [shown(rows, column) for column in text_columns(rank)] == ["who ?", None]


def test_facts_are_texts_and_trees_and_recordings_are_none():
    columns = {type: text_columns(registry.entry("problems", type)) for type in ("answer", "classify", "transcribe")}
    assert columns == {"answer": ["facts", "question"], "classify": ["text"], "transcribe": []}
    assert shown([{"facts": ["Ann left .", ["Bob", "came", "."]]}], "facts") == "Ann left . Bob came ."
