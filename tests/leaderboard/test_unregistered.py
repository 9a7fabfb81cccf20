"""Records of somebody else's plugins: pages need no plugin to name them, and say what is odd about
a row."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

import leaderboard
from harness import registry
from harness.leaderboard.board import read
from harness.leaderboard.pages.compare_page import compare_page
from harness.leaderboard.pages.legend import LEGEND
from harness.leaderboard.pages.task_page import task_tables
from harness.leaderboard.results import Section
from harness.leaderboard.tables.export import scores_csv
from harness.records import Cell, Record, Store
from harness.records.official_test import other_test_size
from harness.running import progress
from harness.tracking import Tracker, default_uri
from tests.support.fake_plugins import PLUGIN
from tests.support.made_pages import architecture, architecture_pages, html_of, register_alone, task
from tests.support.made_records import judged, record

TOLD = {
    "architecture": {"name": "My own", "family": "homemade", "kind": "text", "paper": "Me 2026", "year": 2026},
    "task": {
        "name": "My questions",
        "type": "classify",
        "protocol": "Six classes of short questions.",
        "sizes": {"train": 1000, "test": 60},
        "metrics": ["accuracy"],
        "main_metric": "accuracy",
    },
}
MAIN = {"main_metric": "accuracy"}


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    register_alone(monkeypatch, [architecture("dan", "Deep averaging")], [task("sst2", "classify", "accuracy")])


def texts(table, row: int = 0) -> list[str]:
    return [" ".join(part.text for part in cell) for cell in table.blocks[0].rows[row].cells]


def test_pages_name_what_only_records_tell_of(store: Store):
    """The plugin is on another machine, and `archbench leaderboard` takes none."""
    store.write(record("mine", "questions", 0.5, registered=TOLD, counts={"train": 1000, "test": 60}))
    board = read(store.folder)
    assert (board.name("mine"), board.task_name("questions")) == ("My own", "My questions")
    (table,) = task_tables(board, "questions")
    assert table.title.startswith("My questions: ")
    assert table.blocks[0].rows[0].name == "My own"
    assert [texts(table)[table.columns.index(name) - 1] for name in ("family", "kind")] == ["homemade", "text"]
    (page,) = architecture_pages(board)
    facts = dict(page.parts["facts"])
    assert (facts["paper"], facts["year"], facts["registered"][:8]) == ("Me 2026", "2026", "not here")
    assert "class" not in facts and "file" not in facts
    assert leaderboard.about(board, "questions") == [
        "Classification. Six classes of short questions.",
        "Official sizes: train 1,000, test 60",
    ]
    assert board.main_metric("questions") == "accuracy"


def test_the_registry_knows_better_than_a_record(store: Store):
    """A name that was corrected must not stay wrong."""
    store.write(record("dan", score=0.5, registered=TOLD))
    board = read(store.folder)
    assert (board.name("dan"), board.task_name("sst2")) == ("Deep averaging", "SST-2")


def test_what_nobody_tells_is_a_dash(store: Store):
    """ "family ?" and "kind ?" looked like values."""
    store.write(record("mine", "questions", 0.5))
    (table,) = task_tables(read(store.folder), "questions")
    assert [texts(table)[table.columns.index(name) - 1] for name in ("family", "kind")] == ["–", "–"]


def test_a_record_says_what_it_is_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Whoever makes one, in whatever way the cell ended."""
    monkeypatch.undo()
    file = tmp_path / "own" / "toys.py"
    file.parent.mkdir()
    file.write_text(PLUGIN)
    monkeypatch.setattr("harness.registry.finding._plugins", [file])
    made = Record.skeleton(Cell("toy_text", 1, "toy_topic", 1, "mini", "smoke", {}, 0), "skipped")
    entries = registry.entry("architectures", "toy_text"), registry.entry("tasks", "toy_topic")
    assert made.registered["architecture"]["name"] == entries[0].name
    assert made.registered["architecture"]["family"] == "own"
    assert made.registered["architecture"]["kind"] == "text"
    assert made.registered["task"]["sizes"] == dict(entries[1].sizes)
    assert made.registered["task"]["main_metric"] == entries[1].main_metric
    assert Record.from_json(made.to_json()) == made
    assert Record.skeleton(Cell("nobody", 1, "nothing", 1, "mini", "smoke", {}, 0), "skipped").registered is None


def test_mlflow_has_family_and_kind_of_a_plugin_that_is_not_here(tmp_path: Path):
    from mlflow.tracking import MlflowClient

    tracker = Tracker(default_uri(tmp_path))
    tracker.log(record("mine", "questions", 0.5, registered=TOLD))
    client = MlflowClient(tracking_uri=tracker.uri)
    experiment = client.get_experiment_by_name("questions").experiment_id
    (run,) = client.search_runs([experiment], "tags.record_key != ''")
    assert (run.data.tags["family"], run.data.tags["kind"]) == ("homemade", "text")


def test_predictions_of_a_plugins_task_can_be_compared(store: Store):
    """Its records tell its type, and so how its answers read."""
    for name, right in (("mine", "1100"), ("dan", "1010")):
        judged(store, right, architecture=name, task="questions", registered=TOLD)
    script = compare_page(read(store.folder)).beside["compare-questions-local-equal-full.js"]
    content = json.loads(script.removeprefix("var compareTask=").removesuffix(";\n"))
    assert content["answered"] == [True, True]
    assert "not installed here" in content["about"]


# --- rows with another test set ---


@pytest.mark.parametrize(
    ("tier", "counted", "marked"),
    [("local", 20, True), ("hub", 20, True), ("mini", 20, False), ("local", 60, False), ("local", None, False)],
)
def test_a_row_with_another_test_size_is_marked(store: Store, tier: str, counted: int | None, marked: bool):
    """A third of the test set is another test."""
    counts = {"train": 1000} | ({"test": counted} if counted else {})
    store.write(record("mine", "questions", 0.5, tier=tier, registered=TOLD, counts=counts))
    (table,) = task_tables(read(store.folder), "questions")
    score = table.blocks[0].rows[0].cells[0][0]
    assert ("‡" in score.text) == marked
    assert ("scored on 20 test examples; the task declares 60" in score.notes) == marked
    assert "‡" in " ".join(LEGEND)
    shown = progress.result(record("mine", "questions", 0.5, tier=tier, registered=TOLD, counts=counts, **MAIN))
    assert shown == "accuracy 0.500" + (" ‡ scored on 20 test examples; the task declares 60" if marked else "")


def test_a_task_with_a_test_of_its_own_is_said_to_have_one():
    """ "0 of its 60 examples were scored" stood beside scores of all 60."""
    made = record("mine", "questions", 0.5, counts={"train": 1000, "test": 60}, official_test_examples=0)
    assert other_test_size(made, 60) == "scored on the task's own test, which is no official one"


# --- small things on pages ---


def test_the_number_of_seeds_is_no_seed(store: Store):
    """ "seeds ok: 0" meant that seed 0 was there."""
    store.write(record(score=0.5))
    (table,) = task_tables(read(store.folder), "sst2")
    assert texts(table)[table.columns.index("seeds ok") - 1] == "1 (seed 0)"


def test_parameters_that_nobody_declares_are_a_dash(store: Store):
    store.write(record(score=0.5, parameters={"total": 0, "embedding": 0}))
    (table,) = task_tables(read(store.folder), "sst2")
    assert texts(table)[table.columns.index("parameters") - 1] == "–"


def test_a_reason_does_not_repeat_the_status(store: Store):
    store.write(record(status="timeout", error={"type": "timeout", "message": "still running after 3 s"}))
    (table,) = task_tables(read(store.folder), "sst2")
    assert "timeout: still running after 3 s" in table.notes


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1+2", "@SUM(A1)", "\t=1", '=HYPERLINK("x")'])
def test_a_text_is_no_formula_in_a_spreadsheet(store: Store, text: str):
    """Names and messages come from others, and spreadsheets run formulas when they open a file."""
    told = TOLD | {"architecture": {"name": text}}
    store.write(record("mine", "questions", -0.5, registered=told, command="x", protocol=text))
    board = read(store.folder)
    from harness.leaderboard.tables.export import results

    (row,) = list(csv.DictReader(scores_csv(results(board), ()).splitlines()))
    assert row["name"] == f"'{text}" and row["protocol"] == f"'{text}"
    assert row["mean"] == "-50.0", "a number stays a number"
    assert Section("local", text) in board.sections


def test_pages_name_no_folder_of_the_machine(store: Store):
    """They are published; the messages on the console stay whole."""
    bad = store.folder / "records" / "sst2" / "dan" / "0123456789abcdef.json"
    bad.parent.mkdir(parents=True)
    bad.write_text("{")
    page = html_of(leaderboard.front_page(board := read(store.folder)))
    assert str(bad) in board.notices[0]
    assert str(store.folder) not in page and "$RESULTS/records/sst2/dan/0123456789abcdef.json" in page
