"""One rule for all pages: who is set against whom, who is left out of every verdict, and how that
is said."""

from __future__ import annotations

import csv
import json
from typing import Any

import pytest

import leaderboard
from harness.leaderboard.board import Board, read
from harness.leaderboard.comparison import compare
from harness.leaderboard.pages.compare_page import compare_page
from harness.leaderboard.pages.front_page import best_table, remarks
from harness.leaderboard.pages.mean_ranks import ranked_scores
from harness.leaderboard.pages.plots import task_plots
from harness.leaderboard.pages.runs_page import missing_table
from harness.leaderboard.pages.task_page import task_tables
from harness.leaderboard.pages.timeline import story_page
from harness.leaderboard.ranking import CUSTOM_REMARK, SMOKE_REMARK, at_floor, best_results, ranked, ranks
from harness.leaderboard.results import Section
from harness.leaderboard.tables.export import results, scores_csv
from harness.leaderboard.tables.formatting import section_title
from harness.leaderboard.tables.table import Table
from harness.records import Store
from tests.support.made_pages import architecture, architecture_pages, register_alone, task
from tests.support.made_records import judged, record

SECTION = Section("local", "equal")
GOOD, NEAR, BAD = "1" * 90 + "0" * 10, "1" * 89 + "0" * 11, "1" * 40 + "0" * 60
SMALL = {"name": "small", "examples": 500, "passes": 10, "min_steps": 100, "batch_size": 32}
FULL = {"name": "full", "examples": None, "passes": 10, "min_steps": 100, "batch_size": 32}
GLOVE = {"name": "glove.txt", "sha256": "e" * 64, "dims": 50}


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four architectures of different years, two floors, and three tasks."""
    entries = [
        architecture("dan", "DAN", family="feedforward", year=2015),
        architecture("bilstm", "BILSTM", year=2005),
        architecture("cnn", "CNN", family="convolutional", year=2014),
        architecture("nse", "NSE", family="memory", year=2017),
        architecture("majority", "most frequent class", family="others", kind="floor", year=1900),
        architecture("random", "floor: random class", family="floors", kind="floor", year=1900),
    ]
    tasks = [task("sst2", "classify", "accuracy"), task("fsdd", "transcribe", "wer"), task("chunk", "tag", "accuracy")]
    register_alone(monkeypatch, entries, tasks)


def costly(store: Store, right: str, architecture: str, **fields: Any) -> None:
    """A judged record with a speed and a size, so that it is a point of every plot."""
    costs = {"environment": {"device": "box"}, "parameters": {"total": 10 * (1 + right.count("1"))}}
    costs |= {"flops_per_example": 100.0 * (1 + right.count("1"))}
    judged(store, right, architecture=architecture, **costs | fields)


def fronts(board: Board, task: str = "sst2") -> list[int]:
    """Numbers of points on the Pareto fronts of a task."""
    return [len(trace["x"]) for plot in task_plots(board, task) for trace in plot.data if "Pareto" in trace["name"]]


def together(board: Board, task: str = "sst2") -> set[frozenset[str]]:
    """The architectures that any page sets against each other: by rank, bold, test, front, line or
    place."""
    found: list[frozenset[str]] = []
    for section in board.sections:
        metric = board.main_metric(task)
        names = {result: architecture for architecture, result in board.results(section, task)}
        for members in (ranks(board, section, task, metric), best_results(board, section, task, metric)):
            found += [frozenset(names[result] for result in members)]
        if comparison := compare(board, section, task):
            found.append(frozenset(comparison.results[row][0] for row in comparison.rivals))
            found.append(frozenset(comparison.results[row][0] for row in comparison.tie_group))
        found.append(frozenset(ranked_scores(board, section)[0]))
        found.append(frozenset(names[result] for _, result in ranked(board, section, task, metric)))
    exported: dict[str, set[str]] = {}
    for each in results(board):
        if each["task"] == task and each["rank"] is not None:
            exported.setdefault(each["group"], set()).add(each["architecture"])
    found += map(frozenset, exported.values())
    for shown in compared(board, task):
        groups = {} if shown["never"] else {result["group"] for result in shown["results"]} - {None}
        for group in groups:
            members = (result["architecture"] for result in shown["results"] if result["group"] == group)
            found.append(frozenset(members))
    return {pair for pair in found if len(pair) > 1}


def compared(board: Board, task: str) -> list[dict[str, Any]]:
    """What the page that compares knows of a task, of each section."""
    scripts = compare_page(board).beside
    index = json.loads(scripts["compare-data.js"].removeprefix("var compareData=")[:-2])["tasks"]
    files = [each["file"] for each in index if each["task"] == task]
    return [json.loads(scripts[file].removeprefix("var compareTask=")[:-2]) for file in files]


def cell(table: Table, row: str, column: str) -> list[str]:
    """The lines of one cell of the first row of that name."""
    at = table.columns.index(column) - 1
    rows = [each for block in table.blocks for each in block.rows if each.name == row]
    assert rows, f"no row {row} in {table.title}"
    return [part.text for part in rows[0].cells[at]]


def place(board: Board, name: str) -> str:
    """The place of an architecture on its page, of its first result."""
    (page,) = [page for page in architecture_pages(board) if page.file == f"architecture-{name}.html"]
    table = page.parts["tables"][0]
    return table.blocks[0].rows[0].cells[table.columns.index("place") - 1][0].text


DIFFERENCES: dict[str, dict[str, Any]] = {
    "budget": {"budget": SMALL, "counts": {"train": 500}},
    "passes": {"budget": FULL | {"passes": 20}},
    "steps": {"budget": FULL | {"min_steps": 5000}},
    "batch": {"budget": FULL | {"batch_size": 1}},
    "texts of test": {"sees": ["texts of test"]},
    "labels of phrases": {"sees": ["labels of phrases"]},
    "unknown sight": {"sees": None},
    "vectors": {"vectors": GLOVE},
    "version of the protocol": {"protocol_version": 2},
    "protocol": {"protocol": "paper"},
    "tier": {"tier": "mini"},
    "training data": {"counts": {"train": 999}},
}


@pytest.mark.parametrize("what", list(DIFFERENCES))
def test_no_page_sets_rows_against_each_other_that_differ_in(store, what):
    """A row that trained longer, on more or on other things led over rows that did not, and the
    front page called the lead real."""
    plain = {"budget": FULL}
    costly(store, BAD, "dan", **plain)
    costly(store, GOOD, "bilstm", **plain | DIFFERENCES[what])
    board = read(store.folder)
    assert together(board) == set()
    assert all(size == 1 for size in fronts(board))
    assert not any("BILSTM" in text and "DAN" in text for text in map(str, best_table(board).blocks[0].rows))
    assert {place(board, name) for name in ("dan", "bilstm")} <= {"1 of 1", "–"}
    assert all(each["shares_first_place"] is None for each in results(board))


def test_rows_of_one_group_are_set_against_each_other_everywhere(store):
    """The test above would pass on a board that compares nothing."""
    for name, right in (("dan", BAD), ("bilstm", GOOD), ("cnn", NEAR)):
        costly(store, right, name, budget=FULL)
    board = read(store.folder)
    assert together(board) == {frozenset({"dan", "bilstm", "cnn"}), frozenset({"bilstm", "cnn"})}
    assert fronts(board) == [3, 3]
    assert place(board, "cnn") == "1 of 3, shares the first"
    assert [cell(best_table(board), "SST-2", column) for column in ("best", "compared")] == [
        ["BILSTM"],
        ["3 of 3"],
    ]


def test_a_row_outside_of_the_group_says_why_and_spoils_the_claim_if_it_is_better(store):
    """Who reads "the lead is significant" looks at the first row of the table, and there stands
    another name."""
    judged(store, GOOD, architecture="bilstm", counts={"train": 1001})
    for name, right in (("dan", NEAR), ("cnn", BAD)):
        judged(store, right, architecture=name)
    board = read(store.folder)
    [table] = task_tables(board, "sst2")
    assert [row.name for row in table.blocks[0].rows] == ["BILSTM", "DAN", "CNN"]
    assert [cell(table, name, "rank") for name in ("BILSTM", "DAN", "CNN")] == [["–"], ["1"], ["2 (p < 0.001)"]]
    assert "not ranked: training data (1,001 examples), other than the ranked rows" in table.notes
    assert "2 of 3 results are ranked; the notes of the others say why not." in table.lead
    assert "As good as the best or better, and not ranked with it: BILSTM." in table.lead
    assert cell(table, "BILSTM", "95 % interval") != ["–"], "the interval is its own"
    assert cell(best_table(board), "SST-2", "compared") == ["2 of 3"]


def test_a_row_of_another_test_is_not_called_as_good(store):
    """After a change of a task's data each older row on an easier test was better than the best."""
    for name, score in (("dan", 0.8), ("cnn", 0.79)):
        store.write(record(name, score=score, data={"test": "t" * 64}))
    store.write(record("bilstm", score=0.9, data={"test": "e" * 64}))
    [table] = task_tables(read(store.folder), "sst2")
    assert not [text for text in table.lead if "As good as the best" in text]


@pytest.mark.parametrize(("right", "spoils"), [(GOOD, True), (NEAR, False)], ids=["as good", "behind"])
def test_a_row_that_is_as_good_with_less_training_spoils_the_claim(store, right, spoils):
    """The lead of a tagger was called real, and a CRF did as well with 40 % fewer sentences."""
    for seed in range(3):
        judged(store, GOOD, architecture="dan", budget=FULL, seed=seed)
        judged(store, BAD, architecture="cnn", budget=FULL, seed=seed)
        judged(store, right, architecture="nse", budget=SMALL, counts={"train": 500}, seed=seed)
        judged(store, GOOD, architecture="bilstm", budget=SMALL, counts={"train": 500}, seed=seed, tier="hub")
    board = read(store.folder)
    said = "not decided: as good with less training: NSE (budget small)" if spoils else "better than the other"
    assert cell(best_table(board), "SST-2", "verdict") == [said]
    sentence = "As good as the best or better with less training: NSE (budget small)."
    full, small = (table for table in task_tables(board, "sst2") if "tier local" in table.title)
    assert (sentence in full.lead) is spoils and not any("with less training" in text for text in small.lead)


def test_results_in_other_sections_are_counted(store):
    """ "3 of 3 tested" hid fifty rows of less data."""
    for name in ("dan", "bilstm"):
        judged(store, GOOD, architecture=name, budget=FULL)
    for name in ("dan", "bilstm", "cnn"):
        judged(store, BAD, architecture=name, budget=SMALL, hyperparameters={"hidden": 1}, counts={"train": 500})
    judged(store, GOOD, architecture="nse", budget=FULL, sees=["texts of test"])
    judged(store, GOOD, architecture="nse", budget=FULL, tier="mini")
    board = read(store.folder)
    table = best_table(board)
    assert [[part.text for part in block.rows[0].cells[5]] for block in table.blocks][:3] == [
        ["2 of 2", "4 in other sections"],
        ["1 of 1", "5 in other sections"],
        ["3 of 3", "3 in other sections"],
    ]
    assert task_tables(board, "sst2")[0].lead[:2] == [
        "Budget full: all examples, 10 passes, at least 100 steps, batches of 32.",
        "4 more results of this task, of other budgets or sights, are not compared with these.",
    ]


def test_the_last_version_of_a_task_is_ranked(store):
    """Ten rows on the old rows of a task must not keep the first on the new ones out."""
    for name in ("dan", "bilstm"):
        judged(store, GOOD, architecture=name)
    new = judged(store, BAD, architecture="cnn")
    store.path(new).unlink()
    new.task_version, new.data = 2, {"test": "u" * 64}
    new.key = new.cell.key
    new.predictions = None
    store.write(new)
    board = read(store.folder)
    assert [architecture for architecture, _ in ranked(board, SECTION, "sst2", "accuracy")] == ["cnn"]
    [table] = task_tables(board, "sst2")
    assert any(note.startswith("not ranked: version of the task (1) and test data (") for note in table.notes)


def test_seeds_on_two_states_of_the_data_are_two_results(store):
    """Their mean is a score on neither."""
    for seed, data in enumerate("aab"):
        store.write(record(score=0.8 + seed / 100, seed=seed, data={"test": data * 64}))
    store.write(record(seed=3, status="oom"))
    board = read(store.folder)
    found = [(result.settings, [r.seed for r in result.records]) for _, result in board.results(SECTION, "sst2")]
    assert found == [("test data aaaaaaaaaaaa", [0, 1, 3]), ("test data bbbbbbbbbbbb", [2])]


def test_sections_are_in_order_and_say_what_their_rows_share(store):
    """Whoever opened the front page saw five rows of protocol `paper`, and the large table behind
    them. The largest budget first, then what a user chose; ordinary rows before those that see
    more."""
    for fields in (
        {"budget": SMALL, "counts": {"train": 500}},
        {"budget": FULL, "sees": ["texts of test", "labels of phrases"]},
        {"budget": {"name": "custom", "examples": 2000}, "counts": {"train": 2000}},
        {"budget": FULL},
        {"budget": FULL, "vectors": GLOVE},
        {"budget": FULL, "protocol_version": 2},
        {"budget": FULL, "sees": None},
        {"budget": SMALL | {"name": "medium"}, "counts": {"train": 700}},
        {"budget": FULL, "tier": "mini", "protocol": "smoke"},
        {"budget": FULL, "protocol": "paper"},
    ):
        store.write(record(score=0.5, hyperparameters={"fields": str(fields)}, **fields))
    titles = [section_title(section) for section in read(store.folder).sections]
    assert titles == [
        "tier local, protocol equal 2, budget full",
        "tier local, protocol equal, budget full",
        "tier local, protocol equal, budget full, vectors glove.txt (eeeeeeee)",
        "tier local, protocol equal, budget full, sees: not recorded",
        "tier local, protocol equal, budget full, sees: labels of phrases, texts of test",
        "tier local, protocol equal, budget medium",
        "tier local, protocol equal, budget small",
        "tier local, protocol equal, budget custom",
        "tier local, protocol paper, budget full",
        "tier mini (generated corpus, not the published data), protocol smoke, budget full",
    ]
    sections = list(read(store.folder).sections)
    assert len({section.id for section in sections}) == len(sections)


def test_what_an_architecture_sees_or_ran_on_ones_own_budget_is_no_missing_pair(store):
    """One that reads the texts of test has no row among those that do not."""
    store.write(record("dan", score=0.5))
    store.write(record("bilstm", score=0.5, sees=["texts of test"]))
    store.write(record("cnn", score=0.5, budget={"name": "custom"}))
    assert missing_table(read(store.folder)).lead == ["No cell failed."]


# --- what is never ranked ---


@pytest.mark.parametrize(
    ("fields", "remark"),
    [({"budget": {"name": "custom", "examples": 2000}}, CUSTOM_REMARK), ({"protocol": "smoke"}, SMOKE_REMARK)],
    ids=["custom", "smoke"],
)
def test_rows_of_ones_own_budget_and_of_smoke_have_no_rank_and_no_verdict(store, fields, remark):
    """After `make run` the front page said "none: the lead is real" of scores that mean nothing."""
    for name, right in (("dan", BAD), ("bilstm", GOOD), ("nse", NEAR)):
        costly(store, right, name, **fields)
    board = read(store.folder)
    [table] = task_tables(board, "sst2")
    assert table.lead == [remark]
    assert [row.name for row in table.blocks[0].rows] == ["BILSTM", "NSE", "DAN"]
    styles = {part.style for row in table.blocks[0].rows for each in row.cells for part in each}
    assert "best" not in styles
    for name in ("BILSTM", "NSE", "DAN"):
        assert cell(table, name, "rank") == ["–"]
    assert cell(table, "BILSTM", "95 % interval") != ["–"]
    best = best_table(board)
    assert best.blocks == [] and remark in remarks(board)
    assert fronts(board) == []
    story = story_page(board).parts
    assert story["rankings"] == []
    assert not any("ours so far" in trace["name"] for each in story["tasks"] for trace in each.plot.data)
    assert place(board, "bilstm") == "–"
    assert {(each["rank"], each["shares_first_place"]) for each in results(board)} == {(None, None)}
    assert together(board) == set()


def test_scores_of_smoke_stand_beside_no_published_ones(store):
    """NSE: 89.7 in the survey."""
    store.write(record("nse", score=0.5, protocol="smoke"))
    board = read(store.folder)
    assert next(results(board))["scores"]["accuracy"]["published"] is None
    assert next(each.title for each in story_page(board).parts["tasks"]) == "SST-2: published values alone"


def parts(table: Table):
    return (part for block in table.blocks for row in block.rows for each in row.cells for part in each)


# --- floors ---


def floors(store: Store, right: str = "1" * 50 + "0" * 50, **fields: Any) -> None:
    judged(store, right, architecture="majority", **fields)
    judged(store, "10" * 20 + "0" * 60, architecture="random", **fields)


def test_floors_are_shown_and_take_no_part(store):
    """A constant answer was the best of SQuAD 2.0."""
    floors(store, GOOD)
    for name, right in (("dan", GOOD), ("bilstm", BAD)):
        judged(store, "0" + right[1:], architecture=name)
    judged(store, "1" * 100, architecture="cnn")
    board = read(store.folder)
    [table] = task_tables(board, "sst2")
    assert [row.name for row in table.blocks[0].rows][:2] == ["CNN", "floor: most frequent class"]
    for name, family in (("floor: most frequent class", "others"), ("floor: random class", "floors")):
        assert cell(table, name, "rank") == ["–"]
        assert cell(table, name, "95 % interval") != ["–"]
        assert cell(table, name, "family") == [family], "the kind makes it a floor"
        assert "at the floor" not in cell(table, name, "accuracy")[0]
    assert cell(table, "CNN", "rank") == ["1"]
    assert together(board) <= {frozenset({"majority", "random", "dan", "bilstm", "cnn"})}, "one group, side by side"
    assert place(board, "majority") == "–"
    assert cell(best_table(board), "SST-2", "compared") == ["1 of 3"], "a floor is no result"
    floor = next(each for each in results(board) if each["architecture"] == "majority")
    assert (floor["rank"], floor["shares_first_place"], floor["at_floor"]) == (None, None, False)


def test_a_row_whose_interval_reaches_the_floor_is_marked_and_has_no_rank(store):
    """58.9 where nothing but "no answer" was said has 58.8, and is no result."""
    floors(store)
    judged(store, "1" * 55 + "0" * 45, architecture="dan")
    judged(store, GOOD, architecture="bilstm")
    judged(store, BAD, architecture="cnn")
    store.write(record("nse", score=0.5, data={"test": "t" * 64}))
    board = read(store.folder)
    [table] = task_tables(board, "sst2")
    assert cell(table, "DAN", "accuracy") == ["55.0 (1) at the floor"]
    assert cell(table, "CNN", "accuracy") == ["40.0 (1) at the floor"]
    assert cell(table, "NSE", "accuracy")[0] == "50.0 (1) at the floor", "without an interval the score counts"
    assert cell(table, "BILSTM", "accuracy") == ["90.0 (1)"]
    assert [cell(table, name, "rank") for name in ("BILSTM", "DAN", "CNN", "NSE")] == [["1"], ["–"], ["–"], ["–"]]
    assert (
        "at the floor: not shown to be above most frequent class, which scores 50.0 without any training" in table.notes
    )
    assert "1 of 4 results are ranked; the notes of the others say why not." in table.lead
    assert {each["architecture"] for each in results(board) if each["at_floor"]} == {"dan", "cnn", "nse"}
    lines = [line for line in scores_csv(results(board), ()).splitlines() if ",dan," in line]
    assert ",True," in lines[0]
    assert ranked_scores(board, SECTION)[0] == {"bilstm": {"sst2": 0.9}}


def test_what_was_not_tested_for_the_first_place_neither_shares_it_nor_lost_it(store):
    """182 results were exported as not sharing a place that they were never tested for."""
    floors(store)
    for name, right in (("dan", GOOD), ("cnn", NEAR), ("bilstm", BAD)):
        judged(store, right, architecture=name)
    board = read(store.folder)
    expected = {"dan": True, "cnn": True, "bilstm": None, "majority": None, "random": None}
    assert {each["architecture"]: each["shares_first_place"] for each in results(board)} == expected
    (shown,) = compared(board, "sst2")
    assert {each["id"]: each["tied"] for each in shown["results"]} == expected


def test_where_nothing_is_above_the_floor_nobody_leads(store):
    floors(store)
    for name in ("dan", "bilstm"):
        judged(store, "1" * 52 + "0" * 48, architecture=name)
    board = read(store.folder)
    [table] = task_tables(board, "sst2")
    assert table.lead == [
        "Budget full: all examples.",
        "0 of 2 results are ranked; the notes of the others say why not.",
        "No result is shown to be above the best floor (most frequent class, 50.0): there is no best one.",
    ]
    assert cell(best_table(board), "SST-2", "best") == ["none shown to be above the floor"]
    assert cell(best_table(board), "SST-2", "compared") == ["0 of 2"]
    assert "best" not in {part.style for part in parts(table)}


def test_a_table_without_a_floor_says_that_its_best_may_be_no_better_than_one(store):
    """A user's first grid is of two models, and crowned one of them at chance."""
    judged(store, "1" * 52 + "0" * 48, architecture="dan")
    told = "No floor was run on this test: these rows may be no better than an answer without any training"
    [table] = task_tables(read(store.folder), "sst2")
    assert f"{told} (archbench run -a 'floor_*' -t sst2 --tier local shows it)." in table.lead
    floors(store)
    [table] = task_tables(read(store.folder), "sst2")
    assert not [each for each in table.lead if told in each]


def test_the_floor_of_an_error_rate_is_reached_from_below(store):
    """All words wrong: 100, and 96 after an hour of training."""
    judged(store, "1" * 97 + "0" * 3, architecture="majority", task="fsdd", metric="wer")
    judged(store, "1" * 94 + "0" * 6, architecture="dan", task="fsdd", metric="wer")
    judged(store, BAD, architecture="bilstm", task="fsdd", metric="wer")
    board = read(store.folder)
    found = {a: bool(at_floor(board, result)) for a, result in board.results(SECTION, "fsdd")}
    assert found == {"majority": False, "dan": True, "bilstm": False}


def test_floors_hold_for_all_rows_on_their_test_data(store):
    """They are run once, with the ordinary rows: what reads the texts of test has no other."""
    floors(store)
    judged(store, BAD, architecture="dan", sees=["texts of test"], budget=SMALL)
    judged(store, BAD, architecture="bilstm", protocol="paper")
    store.write(record("cnn", score=0.4, data={"test": "u" * 64}))
    board = read(store.folder)
    found = {a: bool(at_floor(board, r)) for section in board.sections for a, r in board.results(section, "sst2")}
    assert found == {"majority": False, "random": False, "dan": True, "bilstm": True, "cnn": False}


def test_a_floor_that_was_counted_from_the_own_training_examples_holds_alone(store):
    """Each word's commonest tag, of all sentences, stood above every tagger that had a tenth of
    them."""
    whole, part, other = ({"data": {"train": letter * 64, "test": "t" * 64}} for letter in "abc")
    store.write(record("majority", score=0.6, **whole))
    store.write(record("majority", score=0.4, budget=SMALL, hyperparameters={"limits": {"budget": "small"}}, **part))
    for name, fields in (("dan", part | {"budget": SMALL}), ("bilstm", whole), ("cnn", other)):
        store.write(record(name, score=0.55, **fields))
    board = read(store.folder)
    pairs = [pair for section in board.sections for pair in board.results(section, "sst2")]
    assert {a for a, result in pairs if at_floor(board, result)} == {"bilstm", "cnn"}


def test_a_floor_counts_the_same_tokens(store):
    """The counts of whole words are no floor for a model of pieces."""
    pieces = {"name": "bpe", "symbols": 100, "artefact": "5" * 64}
    for name, score, fields in (("random", 5.0, {}), ("dan", 6.0, {}), ("bilstm", 6.0, {"tokens": pieces})):
        metric = {"task": "lm", "score": {"nats_per_token": score}, "main_metric": "nats_per_token"}
        store.write(record(name, data={"test": "t" * 64}, **metric, **fields))
    board = read(store.folder)
    found = {a: bool(at_floor(board, r)) for section in board.sections for a, r in board.results(section, "lm")}
    assert found == {"random": False, "dan": True, "bilstm": False}


# --- the official test ---


@pytest.mark.parametrize(
    ("fields", "official"),
    [
        ({"counts": {"train": 1000, "test": 100}}, True),
        ({"counts": {"train": 1000, "test": 30}}, False),
        ({"counts": {"train": 1000, "test": 100}, "official_test_examples": 100}, True),
        ({"counts": {"train": 1000, "test": 100}, "official_test_examples": 0}, False),
        ({"counts": {"train": 1000, "test": 130}, "official_test_examples": 100}, False),
        ({"counts": {"train": 1000}}, True),
        ({"counts": {"train": 1000, "test": 30}, "official_test_examples": 0, "tier": "mini"}, True),
    ],
)
def test_only_scores_on_the_official_test_stand_beside_published_ones(store, fields, official):
    """58.8 on a test of one's own stood in one column under BERT's 83.1."""
    store.write(record("nse", score=0.8, **fields))
    board = read(store.folder)
    compared = official and "tier" not in fields
    (page,) = architecture_pages(board)
    beside = [part.text for table in page.parts["tables"] if table.id == "published" for part in parts(table)]
    assert any("difference" in text for text in beside) == compared
    [table] = task_tables(board, "sst2")
    assert ("‡" in cell(table, "NSE", "accuracy")[0]) == (not official)
    titles = [each.title for each in story_page(board).parts["tasks"] if each.title.startswith("SST-2")]
    assert titles == [
        f"SST-2: {section_title(next(iter(board.sections)))}" if compared else "SST-2: published values alone"
    ]


# --- exports ---


def test_the_exports_say_what_may_be_compared(store):
    judged(store, GOOD, architecture="dan", budget=FULL, protocol_version=2, sees=["texts of test"], vectors=GLOVE)
    judged(store, NEAR, architecture="bilstm", budget=FULL, protocol_version=2, sees=["texts of test"], vectors=GLOVE)
    judged(store, GOOD, architecture="cnn", sees=None)
    store.write(record("nse", status="oom"))
    board = read(store.folder)
    found = {each["architecture"]: each for each in results(board)}
    names = ("protocol_version", "budget", "sees", "vectors")
    assert [found["dan"][name] for name in names] == [2, "full", ["texts of test"], "glove.txt"]
    assert [found["cnn"][name] for name in names] == [1, "full", None, None]
    assert found["dan"]["group"] == found["bilstm"]["group"] != found["cnn"]["group"]
    assert found["nse"]["group"] is None
    assert [found[name]["shares_first_place"] for name in ("dan", "bilstm", "cnn")] == [True, True, None]
    rows = {row["architecture"]: row for row in csv.DictReader(scores_csv(results(board), ()).splitlines())}
    assert [rows[name]["sees"] for name in ("dan", "cnn", "nse")] == ["texts of test", "not recorded", "nothing else"]
    assert rows["dan"]["group"] == found["dan"]["group"]


def test_the_whole_board_is_built_from_rows_of_all_sorts(store):
    floors(store)
    for number, fields in enumerate(DIFFERENCES.values()):
        costly(store, BAD, "dan", hyperparameters={"n": number}, **fields)
    costly(store, GOOD, "bilstm", protocol="smoke")
    costly(store, GOOD, "cnn", budget={"name": "custom"})
    assert leaderboard.main(["--results", str(store.folder)]) == 0
    text = (store.folder / "leaderboard" / "index.html").read_text()
    assert SMOKE_REMARK in text and CUSTOM_REMARK in text
