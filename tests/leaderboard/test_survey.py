"""The survey's tables with ours beside: every printed value, one row for each method, and a choice
among our results that no test score has a part in."""

from __future__ import annotations

import csv
import html
import re
from typing import Any

import pytest

from harness.leaderboard.board import Board, read
from harness.leaderboard.pages.survey_page import survey_pages
from harness.leaderboard.published import SOURCES, Published
from harness.leaderboard.tables.methods import to_table
from harness.leaderboard.tables.survey import surveys
from harness.leaderboard.tables.table import Table
from tests.support.made_pages import architecture, html_of, register_alone, task
from tests.support.made_records import record

OTHER_TEST = {"counts": {"train": 1000, "test": 30}}
SMALL = {"name": "small", "examples": 500, "passes": 10, "min_steps": 100, "batch_size": 32}


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Architectures with and without published values, a floor, and four tasks."""
    entries = [
        architecture("nse", "NSE", family="memory", year=2017),
        architecture("dpcnn", "Deep pyramid", year=2017),
        architecture("dan", "DAN", year=2015),
        architecture("bert", "Small BERT", year=2018),
        architecture("majority", "most frequent class", family="floors", kind="floor", year=1900),
    ]
    tasks = [
        task("sst2", "classify", "accuracy"),
        task("sst5", "classify", "accuracy"),
        task("wikiqa", "rank", "map", "mrr"),
        task("chunk", "tag", "accuracy"),
    ]
    register_alone(monkeypatch, entries, tasks)


def tables(board: Board) -> dict[str, Table]:
    """The tables of all pages by id."""
    return {table.id: to_table(board, table) for survey in surveys(board) for table in survey.tables}


def rows(table: Table) -> dict[str, dict[str, list[str]]]:
    """The lines of each cell, by the names of the row and of the column."""
    return {
        row.name: {
            column: [part.text for part in cell] for column, cell in zip(table.full_columns[1:], row.cells, strict=True)
        }
        for block in table.blocks
        for row in block.rows
    }


NSE = "Neural Semantic Encoder [95]"
COLUMNS = ("published", "ours", "difference", "training examples")


def of_nse(board: Board) -> dict[str, list[str]]:
    """The cells of NSE on SST-2, for which the survey prints 89.70."""
    cells = rows(tables(board)["table-1"])[NSE]
    return {name: cells[f"SST-2 accuracy: {name}"] for name in COLUMNS if f"SST-2 accuracy: {name}" in cells}


def test_every_published_value_is_in_its_table_as_it_is_printed(store):
    """The survey's rows are what ours are read against; 95.63 stood there as 95.6."""
    board = read(store.folder)
    shown = {id: rows(table) for id, table in tables(board).items()}
    metrics = {"accuracy": "accuracy", "exact_match": "EM", "f1": "F1", "map": "MAP", "mrr": "MRR"}
    with (SOURCES / "published.csv").open(encoding="utf-8", newline="") as file:
        values = list(csv.DictReader(file))
    assert len(values) == 192
    for value in values:
        column = f"{board.task_name(value['dataset'])} {metrics[value['metric']]}: published"
        [text] = shown[f"table-{value['survey_table']}"][value["method_as_printed"]][column]
        digits = value["value"].replace(".", "").lstrip("0")
        assert text.replace(".", "").lstrip("0") == digits
        assert float(text) == pytest.approx(float(value["value"]) * (100 if value["metric"] in ("map", "mrr") else 1))


@pytest.mark.parametrize(
    ("printed", "metric", "percent"),
    [("95.63", "accuracy", "95.63"), ("86.0", "f1", "86.0"), ("0.6520", "map", "65.20"), ("0.5", "mrr", "50")],
)
def test_a_value_keeps_its_digits_in_percent(printed: str, metric: str, percent: str):
    assert Published("4", "a", "A", "wikiqa", metric, printed, False).percent == percent


def test_ours_stands_in_the_row_of_its_published_value(store):
    store.write(record("nse", score=0.79954))
    store.write(record("dan", score=0.7))
    board = read(store.folder)
    assert of_nse(board) == dict(zip(COLUMNS, (["89.70"], ["80.0 (1)"], ["−9.7"], ["1,000"]), strict=True))
    found = tables(board)
    assert [*rows(found["ours-1"])] == ["DAN"], "one row for each method"
    assert rows(found["ours-1"])["DAN"] == {
        "SST-2 accuracy: ours": ["70.0 (1)"],
        "SST-2 accuracy: training examples": ["1,000"],
    }
    assert "best" not in {
        part.style for t in found.values() for row in t.blocks[0].rows for c in row.cells for part in c
    }


def test_columns_without_a_value_are_left_out(store):
    """Table 1 of the survey has no SST-5; five of seven columns were dashes."""
    store.write(record("nse", "sst5", score=0.4))
    columns = tables(read(store.folder))["table-1"].full_columns
    assert [c for c in columns if c.startswith("SST-5")] == [
        "SST-5 accuracy: ours",
        "SST-5 accuracy: training examples",
    ]
    assert [c for c in columns if c.startswith("SST-2")] == ["SST-2 accuracy: published"]


def test_a_dash_means_that_the_survey_prints_no_value(store):
    """It meant three things: nothing printed, nothing measured, no such task."""
    store.write(record("nse", score=0.8))
    store.write(record("bert", score=0.8))
    store.write(record("dpcnn", status="oom", error={"type": "oom", "message": "full"}))
    for table in tables(read(store.folder)).values():
        for name, cells in rows(table).items():
            for column, lines in cells.items():
                assert "–" not in lines or column.endswith("published"), (table.id, name, column)
    cells = rows(tables(read(store.folder))["table-1"])
    ours = {name: cells[name]["SST-2 accuracy: ours"] for name in cells}
    assert ours["Deep Pyramid CNN [49]"] == ["oom"]
    assert ours["ULMFiT [216]"] == ["not here"]
    assert ours["BERT-base [7,154]"] == ["not here"], "our small BERT is no counterpart of it"


def run_more(**fields: Any) -> dict[str, Any]:
    return {"counts": {"train": 900, "test": 100}} | fields


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({"counts": {"train": 500, "test": 100}, "budget": SMALL}, False),
        (run_more(protocol="paper"), False),
        (run_more(counts={"train": 1000, "test": 100}, protocol="paper"), True),
        (run_more(counts={"train": 1000, "test": 100}, protocol_version=2), True),
        (run_more(counts={"train": 1000, "test": 100}, sees=["texts of test"]), False),
        (run_more(counts={"train": 2000, "test": 100}, tier="mini"), False),
        (run_more(counts={"train": 2000, "test": 100}, protocol="smoke"), False),
        (run_more(counts={"train": 2000, "test": 30}), False),
    ],
)
def test_the_choice_among_our_results_does_not_look_at_their_scores(store, fields: dict[str, Any], shown: bool):
    """The best of several by its test score would be chosen on test."""
    other = {"counts": {"train": 1000, "test": 100}}
    for score in (0.1, 0.9):
        store.write(record("nse", score=0.5, **other))
        store.write(record("nse", score=score, hyperparameters={"other": 1}, **fields))
        ours = of_nse(read(store.folder))["ours"]
        assert ours == ([f"{100 * score:.1f} (1)"] if shown else ["50.0 (1)"])


def test_settings_that_differ_in_nothing_else_have_a_line_each(store):
    for score, hidden in ((0.8, 100), (0.7, 50)):
        store.write(record("nse", score=score, hyperparameters={"hidden": hidden}))
    store.write(record("nse", seed=1, status="oom", hyperparameters={"hidden": 100}))
    cells = of_nse(read(store.folder))
    assert cells["ours"] == ["80.0 (1)", "oom (1)", "70.0 (1)"]
    assert cells["difference"] == ["−9.7", "", "−19.7"]
    assert cells["training examples"] == ["1,000", "", "1,000"]


def test_scores_that_may_not_stand_beside_published_ones_are_counted(store):
    """58.8 on a test of one's own stood in one column under BERT's 83.1."""
    store.write(record("nse", score=0.8, **OTHER_TEST))
    store.write(record("dan", score=0.9, tier="mini"))
    board = read(store.folder)
    [sentiment] = [survey for survey in surveys(board) if survey.id == "1"]
    assert [table.id for table in sentiment.tables] == ["table-1"]
    assert of_nse(board) == {"published": ["89.70"]}
    assert sentiment.lead == [
        "23 methods that the survey prints, none of them with a score of ours beside.",
        "2 more results of ours are on the pages of the tasks alone: of other budgets and protocols, of further"
        " inputs, of the generated corpus, or not on the official test.",
    ]


def test_a_row_with_further_inputs_is_not_the_system_of_the_paper(store):
    """NSE with characters beside the published NSE would be a gain of ours that the paper could
    have had."""
    store.write(record("nse", score=0.8, hyperparameters={"inputs": {"char_cnn_words": {"version": 1}}}))
    board = read(store.folder)
    assert of_nse(board) == {"published": ["89.70"]}
    [result] = [result for _, result in board.results(next(iter(board.sections)), "sst2")]
    assert not board.beside_published(result)


def test_tables_without_published_values_have_other_tests_too(store):
    store.write(record("nse", "chunk", score=0.8, **OTHER_TEST))
    [row] = tables(read(store.folder))["ours-tagging"].blocks[0].rows
    assert [part.text for part in row.cells[0]] == ["80.0 (1) ‡"]


def test_floors_come_first(store):
    for name in ("dan", "majority"):
        store.write(record(name, score=0.5))
    assert [*rows(tables(read(store.folder))["ours-1"])] == ["floor: most frequent class", "DAN"]


def test_floors_are_no_methods_and_a_pair_with_a_score_did_not_end_without(store):
    """A page counted two methods, of which one was a floor, and told of the other that it had no
    score."""
    store.write(record("majority", score=0.5))
    store.write(record("dan", score=0.6))
    failed = {"type": "timeout", "message": "slow"}
    store.write(record("dan", status="timeout", error=failed, hyperparameters={"hidden": 7}))
    store.write(record("bert", status="timeout", error=failed))
    page = html_of([*survey_pages(*with_tables(store))][1])
    assert "1 further methods of ours" in page
    assert "Ended without a score: Small BERT on SST-2 (timeout)." in page


def with_tables(store):
    """The surveys of a board and their tables by name."""
    board = read(store.folder)
    found = surveys(board)
    return found, {survey.name: [to_table(board, table) for table in survey.tables] for survey in found}


def test_a_page_for_each_table_and_one_that_lists_them(store):
    store.write(record("nse", score=0.8, parameters={"total": 1}))
    store.write(record("dan", status="timeout", error={"type": "timeout", "message": "slow"}))
    listing, *pages = survey_pages(*with_tables(store))
    text = html_of(listing)
    assert [page.file for page in pages] == [f"survey-{i}.html" for i in range(1, 6)]
    for page in pages:
        assert f'<a href="{page.file}">{page.title}</a>: ' in text
        assert len(html_of(page)) > 1000
    assert "23 methods that the survey prints, 1 of them with a score of ours beside (ours on SST-2)." in text
    sentiment = html_of(pages[0])
    assert "Ended without a score: DAN on SST-2 (timeout)." in sentiment
    assert '<th scope="colgroup" colspan="4" class="first">SST-2 accuracy</th>' in sentiment
    for mark in re.findall(r'<sup><a href="#([^"]+)"', sentiment):
        assert f'<li id="{mark}">' in sentiment, "a mark leads to its note"
    assert html.escape("tier local, protocol equal, budget full") in sentiment
