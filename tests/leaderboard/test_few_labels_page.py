"""The page of few labels: who has a hundred of them reads there which system makes most of them."""

from __future__ import annotations

import pytest

from harness.leaderboard.pages.few_labels_page import few_labels_page
from harness.records import Record, Store
from tests.support.made_pages import architecture, board_of, html_of, task
from tests.support.made_records import record

NAMES = [architecture("naive_bayes", "Naive Bayes", family="classical", year=1961), architecture("uda", "UDA")]
TASKS = [task("sst2", "classify", "accuracy"), task("ag_news", "classify", "accuracy")]


@pytest.fixture
def store(tmp_path) -> Store:
    (tmp_path / "records").mkdir()
    return Store(tmp_path)


def trained(id: str, labels: int | None, score: float | None, seed: int = 0, limits: dict | None = None, **fields):
    """A record of a training with so many labels (None: all)."""
    limits = {"max_train": None, "max_epochs": None} | (limits or {}) | ({"labels": labels} if labels else {})
    return record(id, score=score, seed=seed, hyperparameters={"hidden": 100, "limits": limits}, **fields)


def page(store: Store, *records: Record):
    for each in records:
        store.write(each)
    return few_labels_page(board_of(store, NAMES, TASKS))


def tables(made) -> list[list[list[str]]]:
    """Columns and rows of the tables of the page."""
    return [
        [table.columns, *([row.name, *(cell[0].text for cell in row.cells)] for row in table.blocks[0].rows)]
        for table in made[0].parts["tables"]
    ]


def test_rows_are_joined_over_numbers_of_labels_and_all_of_them_come_last(store):
    made = page(
        store,
        trained("naive_bayes", 1000, 0.78),
        trained("naive_bayes", 200, 0.60),
        trained("naive_bayes", 200, 0.62, seed=1),
        trained("naive_bayes", None, 0.81),
        trained("uda", 200, 0.70, sees=["unlabelled"]),
    )
    assert tables(made) == [
        [
            ["Architecture", "besides labels", "200 labels", "1,000 labels", "all labels"],
            ["Naive Bayes", "–", "61.0 ± 1.4 (2)", "78.0 (1)", "81.0 (1)"],
            ["UDA", "unlabelled", "70.0 (1)", "–", "–"],
        ]
    ]


def test_a_line_goes_through_the_means_up_to_all_rows(store):
    made = page(
        store,
        trained("naive_bayes", None, 0.81, counts={"train": 6920}),
        trained("naive_bayes", 200, 0.60),
        trained("naive_bayes", 200, 0.62, seed=1),
        trained("uda", 200, 0.70, sees=["unlabelled"]),
    )
    (plot,) = made[0].parts["plots"]
    first, second = plot.data
    assert (first["name"], first["x"], first["y"]) == ("Naive Bayes", [200, 6920], [61.0, 81.0])
    assert first["error_y"]["array"] == [1.41, 0.0]
    assert (second["name"], second["x"], second["y"]) == ("UDA, unlabelled", [200], [70.0])


@pytest.mark.parametrize(
    "other",
    [{"protocol": "paper"}, {"tier": "hub"}, {"task": "ag_news"}, {"limits": {"max_train": 500, "budget": "small"}}],
)
def test_what_was_trained_in_another_way_is_in_no_line(store, other):
    """Scores of other passes, data or rules would look like the worth of labels."""
    made = page(
        store,
        trained("naive_bayes", 50, 0.55),
        trained("naive_bayes", 200, 0.60),
        trained("naive_bayes", 1000, 0.78, **other),
    )
    (found,) = tables(made)
    assert found == [
        ["Architecture", "besides labels", "50 labels", "200 labels"],
        ["Naive Bayes", "–", "55.0 (1)", "60.0 (1)"],
    ]


def test_what_did_not_end_well_is_shown(store):
    failed = trained("uda", 200, None, status="timeout", error={"type": "timeout", "message": "no time"})
    made = page(store, trained("uda", 50, 0.5), failed)
    assert tables(made)[0][1] == ["UDA", "–", "50.0 (1)", "timeout"]


def test_who_has_only_all_labels_is_left_out(store):
    """Seventy rows of all labels would hide the four that say something here."""
    made = page(store, trained("naive_bayes", 50, 0.5), trained("naive_bayes", None, 0.8), trained("uda", None, 0.8))
    assert [row[0] for row in tables(made)[0][1:]] == ["Naive Bayes"]


@pytest.mark.parametrize("labels", [[None], [200]])
def test_without_two_numbers_of_labels_there_is_no_page(store, labels):
    assert page(store, *(trained("uda", number, 0.7) for number in labels)) == []


def test_smoke_runs_are_left_out(store):
    assert page(store, *(trained("uda", number, 0.7, protocol="smoke") for number in (50, 200))) == []


def test_the_page_can_be_read(store):
    made = page(store, trained("naive_bayes", 50, 0.5), trained("naive_bayes", 200, 0.6))
    assert "Naive Bayes" in html_of(made[0]) and "200 labels" in html_of(made[0])
