"""Gaps between ours and what others report: every result that stands beside a value, with what is
known of the reasons."""

from __future__ import annotations

import pytest

from harness.errors import LeaderboardError
from harness.leaderboard.board import Board, read
from harness.leaderboard.pages.gaps_page import gap_plot, gaps_document, gaps_page
from harness.leaderboard.tables.gaps import gap_tables, gaps
from harness.records import Store
from tests.support.made_pages import architecture, html_of, register_alone, task
from tests.support.made_records import record

HEADER = "task,architecture,reported,by,with,why\n"


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three architectures, of which the survey prints a value of two, and three tasks."""
    entries = [
        architecture("nse", "NSE", vectors_of_paper="GloVe", deviations=("no memory of its own",)),
        architecture("text_gcn", "Text GCN"),
        architecture("dan", "DAN"),
    ]
    tasks = [task("sst2", "classify", "accuracy"), task("ag_news", "classify", "accuracy")]
    register_alone(monkeypatch, entries, [*tasks, task("fsdd", "transcribe", "wer", "cer")])


def board_with(store: Store, lines: str) -> Board:
    """The board of the records in ``store`` and these lines of gaps.csv."""
    (store.folder / "gaps.csv").write_text(HEADER + lines, encoding="utf-8")
    return read(store.folder)


def shown(board: Board) -> dict[str, list[list[str]]]:
    """The texts of every row, by its name."""
    tables = gap_tables(board, gaps(board)[0]).values()
    return {row.name: [[part.text for part in cell] for cell in row.cells] for t in tables for row in t.blocks[0].rows}


def test_every_value_of_others_stands_beside_ours(store):
    store.write(record("nse", score=0.8, counts={"train": 250}, partial=True, parameters={"total": 9, "embedding": 5}))
    store.write(record("dan", score=0.42))
    board = board_with(
        store,
        'sst2,nse,79.5-81,toolkit,"GloVe, phrases",one reason\n'
        "sst2,dan,45,paper,,\nsst2,dan,,,,a reason alone\nsst2,text_gcn,70,,,\n",
    )
    assert shown(board) == {
        "NSE": [
            ["89.70", "79.5 to 81"],
            ["survey, table 1", "toolkit (GloVe, phrases)"],
            ["80.0 (1)"],
            ["−9.7", "0.0"],
            ["25 % (250 of 1,000)"],
            ["one reason", "Word vectors start at random; the paper starts from GloVe.", "1 deviation from the paper"],
        ],
        "DAN": [["45"], ["paper"], ["42.0 (1)"], ["−3.0"], ["100 % (1,000 of 1,000)"], ["a reason alone"]],
    }
    assert gaps(board)[1] == 2, "Text GCN on SST-2, and on AG News in the survey"


@pytest.mark.parametrize(("score", "difference"), [(0.40, "−2.0"), (0.42, "0.0"), (0.43, "0.0"), (0.46, "+2.0")])
def test_the_difference_is_to_the_nearer_end_of_a_range(store, score: float, difference: str):
    store.write(record("dan", score=score))
    assert shown(board_with(store, "sst2,dan,42-44,,,\n"))["DAN"][3] == [difference]


def test_what_is_of_the_generated_corpus_or_smoke_is_no_gap(store):
    store.write(record("nse", score=0.99, tier="mini"))
    store.write(record("nse", score=0.99, protocol="smoke"))
    store.write(record("nse", score=0.99, counts={"train": 1000, "test": 3}))
    assert gaps(read(store.folder))[0] == []


def test_every_setting_has_a_row(store):
    for hidden in (50, 100):
        store.write(record("nse", score=0.8, hyperparameters={"hidden": hidden}))
    assert [*shown(read(store.folder))] == ["NSE (100 hidden units)", "NSE (50 hidden units)"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("sst2,,1,,,", "expected a task and the id of an architecture"),
        (",dan,1,,,", "expected a task and the id of an architecture"),
        ("sst2,dan,about 80,,,", "reported 'about 80' is no number or range such as 42-44.5"),
        ("sst2,dan,44-42,,,", "reported '44-42' is no number or range"),
        ("sst2,dan,44,somebody,,", "by 'somebody' is none of paper, toolkit, or empty"),
        ("sst2,dan", "expected 6 fields"),
    ],
)
def test_a_line_that_is_not_as_it_should_be_is_named(store, line: str, message: str):
    with pytest.raises(LeaderboardError, match=rf"gaps\.csv:3: {message}"):
        gaps(board_with(store, f"sst2,dan,,,,fine\n{line}\n"))


def test_the_picture_has_the_share_of_the_data_and_no_misprint(store):
    """The largest lead of all, +20.6, was over a figure that is likely a misprint."""
    store.write(record("nse", score=0.8, counts={"train": 250}))
    store.write(record("text_gcn", "ag_news", score=0.88))
    store.write(record("dan", "fsdd", {"wer": 0.10}))
    board = board_with(store, "fsdd,dan,3-4,,,\n")
    plot = gap_plot(board, gaps(board)[0])
    assert {trace["name"]: (trace["x"], trace["y"]) for trace in plot.data} == {
        "SST-2": ([25.0], [-9.7]),
        "FSDD": ([100.0], [-6.0]),
    }, "6 points more errors are worse"
    assert shown(board)["Text GCN"][3] == ["+20.4"], "in the table, with a note"
    store.write(record("text_gcn", "ag_news", score=0.88))
    board = board_with(store, "ag_news,text_gcn,90,paper,,\n")
    assert [trace["y"] for trace in gap_plot(board, gaps(board)[0]).data if trace["name"] == "AG News"] == [[-2.0]]


def test_the_page_links_to_tasks_and_architectures_and_the_markdown_has_the_same_rows(store):
    store.write(record("nse", score=0.8, hyperparameters={"x": "<img src=x onerror=alert(1)>"}))
    store.write(record("nse", score=0.7, hyperparameters={"x": "y"}))
    board = read(store.folder)
    page = html_of(gaps_page(board, *gaps(board)))
    assert '<h2><a href="task-sst2.html">SST-2 accuracy</a></h2>' in page
    assert '<a href="architecture-nse.html">1 deviation from the paper</a>' in page
    assert "<img" not in page and r"\u003cimg" not in page
    document = gaps_document(board, gaps(board)[0])
    for text in ("## SST-2 accuracy", "89.70", "survey, table 1", "70.0 (1)", "−19.7"):
        assert text in document
    assert document.count("\n| NSE") == page.count('<th scope="row"') == 2


def test_no_records_are_no_gaps(store):
    board = read(store.folder)
    found, _ = gaps(board)
    assert found == [] and gap_plot(board, found) is None
    assert "No score of ours has one of others beside it yet." in gaps_document(board, found)
