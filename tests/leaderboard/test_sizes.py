"""Lines over training sizes: which points are one line, and from where on it is ahead."""

from __future__ import annotations

import pytest

from harness.leaderboard.board import Board, read
from harness.leaderboard.pages.plots import task_plots
from harness.leaderboard.sizes import ahead_from, best_classical, lines
from harness.leaderboard.tables.budgets import budget_tables
from harness.records import Store
from tests.support.made_records import record

LSTM = {125: 0.5, 500: 0.72, 2000: 0.7, 6920: 0.8}
BAYES = {125: 0.6, 500: 0.7, 2000: 0.75, 6920: 0.78}


def write(store: Store, architecture: str, points: dict[int, float], seed: int = 0, **fields) -> None:
    settings, passes, test = fields.pop("settings", {}), fields.pop("passes", 8), fields.pop("test", "t" * 64)
    for size, score in points.items():
        whole = size == 6920
        store.write(
            record(
                architecture,
                score=score,
                seed=seed,
                counts={"train": size},
                data={"train": f"{size:064}", "dev": "d" * 64, "test": test},
                budget={"name": "full" if whole else "custom", "examples": None if whole else size, "passes": passes},
                hyperparameters={"limits": {"max_train": None if whole else size}, **settings},
                **fields,
            )
        )


def of(store: Store) -> tuple[Board, dict]:
    board = read(store.folder)
    found = lines(board, "sst2")
    return board, next(iter(found.values()), {})


def test_the_points_of_an_architecture_are_one_line(store):
    write(store, "lstm", LSTM)
    write(store, "naive_bayes", BAYES)
    board, found = of(store)
    assert found == {"lstm": LSTM, "naive_bayes": BAYES}
    assert best_classical(board, "sst2", found) == BAYES


def test_a_line_is_ahead_from_where_it_stays_ahead(store):
    """At 500 examples it is better and at 2,000 not: from 6,920 on it pays."""
    write(store, "lstm", LSTM)
    write(store, "naive_bayes", BAYES)
    board, _ = of(store)
    assert ahead_from(board, "sst2", LSTM, BAYES) == 6920
    assert ahead_from(board, "sst2", {**LSTM, 2000: 0.76}, BAYES) == 500
    assert ahead_from(board, "sst2", {**LSTM, 6920: 0.78}, BAYES) is None, "as good is not better"


def test_other_settings_are_another_line(store):
    """Ten passes at one size and fifty at the next would be no curve; the longest line is kept."""
    write(store, "lstm", LSTM)
    write(store, "lstm", {125: 0.9, 500: 0.9, 2000: 0.9}, settings={"hidden": 7})
    assert of(store)[1] == {"lstm": LSTM}


@pytest.mark.parametrize("other", [{"passes": 4}, {"test": "u" * 64}])
def test_lines_of_another_budget_or_test_have_a_table_of_their_own(store, other):
    """A row of four passes stood beside one of eight, and was called better or worse than it."""
    write(store, "lstm", LSTM)
    write(store, "naive_bayes", BAYES)
    write(store, "gru", LSTM, **other)
    board = read(store.folder)
    found = lines(board, "sst2")
    assert [set(of_place) for of_place in found.values()] == [{"lstm", "naive_bayes"}, {"gru"}]
    tables = budget_tables(board, "sst2")
    assert len({table.id for table in tables}) == 2 and "8 passes" in tables[0].title
    assert f"{other.get('passes', 8)} passes" in tables[1].title


def test_a_point_is_the_mean_of_the_seeds_that_have_it(store):
    """Seeds that the dearest size lacks were left out of the cheap ones as well."""
    write(store, "lstm", LSTM)
    write(store, "lstm", {size: score + 0.1 for size, score in LSTM.items() if size != 6920}, seed=1)
    assert of(store)[1]["lstm"] == pytest.approx({125: 0.55, 500: 0.77, 2000: 0.75, 6920: 0.8})


def test_other_versions_are_never_averaged(store):
    write(store, "lstm", LSTM)
    write(store, "lstm", dict.fromkeys(LSTM, 0.0), architecture_version=9)
    assert of(store)[1]["lstm"] in (LSTM, dict.fromkeys(LSTM, 0.0))


def test_two_sizes_are_no_line_and_counting_alone_no_table(store):
    write(store, "lstm", {125: 0.5, 6920: 0.8})
    write(store, "naive_bayes", BAYES)
    board = read(store.folder)
    assert lines(board, "sst2") == {} and budget_tables(board, "sst2") == []


def test_rows_that_see_test_texts_are_left_out(store):
    write(store, "lstm", LSTM)
    write(store, "text_gcn", LSTM, sees=["test texts"])
    write(store, "gru", LSTM, vectors={"name": "glove.txt", "sha256": "e" * 64, "dims": 50})
    assert set(of(store)[1]) == {"lstm"}


def test_the_table_marks_what_is_better_than_every_classical_row(store):
    write(store, "lstm", LSTM)
    write(store, "naive_bayes", BAYES)
    board = read(store.folder)
    [table] = budget_tables(board, "sst2")
    rows = {row.name: row for row in table.blocks[0].rows}
    lstm = next(row for name, row in rows.items() if "LSTM" in name)
    assert [(cell[0].text, cell[0].style) for cell in lstm.cells] == [
        ("50.0", ""), ("72.0", "best"), ("70.0", ""), ("80.0", "best"), ("6,920", "")
    ]  # fmt: skip
    [bayes] = [row for row in rows.values() if row.classical]
    assert [cell[0].style for cell in bayes.cells] == [""] * 5
    plots = [plot for plot in task_plots(board, "sst2") if plot.id == f"plot-{table.id}"]
    assert [len(plot.data) for plot in plots] == [2]
    assert table.id not in {plot.id for plot in task_plots(board, "sst2")}, "it would be drawn into the table"
    assert [trace["line"]["dash"] for trace in plots[0].data] == ["dot", "solid"]
