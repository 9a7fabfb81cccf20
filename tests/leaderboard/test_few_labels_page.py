"""The page of few labels: who has a hundred of them reads there which system makes most of them."""

from __future__ import annotations

import pytest

from harness.leaderboard.pages.few_labels_page import few_labels_page
from harness.records import Record, Store
from harness.settings import LABELLED_PASSES, LABELLED_STEPS
from harness.task import WITHOUT_LABELS
from tests.support.made_pages import architecture, board_of, html_of, task
from tests.support.made_records import record

NAMES = [
    architecture("naive_bayes", "Naive Bayes", family="classical", year=1961),
    architecture("uda", "UDA"),
    architecture("floor_majority", "most frequent", kind="floor", family="floors"),
    architecture("floor_random", "chance", kind="floor", family="floors"),
]
TASKS = [task("sst2", "classify", "accuracy"), task("ag_news", "classify", "accuracy")]


def trained(id: str, labels: int | None, score: float | None, seed: int = 0, limits: dict | None = None, **fields):
    """A record of a training with so many labels (None: all)."""
    limits = {"max_train": None, "max_epochs": None} | (limits or {}) | ({"labels": labels} if labels else {})
    settings = {"hidden": 100, "limits": limits} | fields.pop("settings", {})
    return record(id, score=score, seed=seed, hyperparameters=settings, **fields)


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
        trained("uda", 200, 0.70, sees=[WITHOUT_LABELS]),
    )
    assert tables(made) == [
        [
            ["Architecture", "besides labels", "200 labels", "1,000 labels", "all labels"],
            ["Naive Bayes", "–", "61.0 ± 1.4 (2)", "78.0 (1)", "81.0 (1)"],
            ["UDA", "texts without labels", "70.0 (1)", "–", "–"],
        ]
    ]


def test_a_line_goes_through_the_means_up_to_all_rows(store):
    made = page(
        store,
        trained("naive_bayes", None, 0.81, counts={"train": 6920}),
        trained("naive_bayes", 200, 0.60),
        trained("naive_bayes", 200, 0.62, seed=1),
        trained("uda", 200, 0.70, sees=[WITHOUT_LABELS]),
    )
    (plot,) = made[0].parts["plots"]
    first, second = plot.data
    assert (first["name"], first["x"], first["y"]) == ("Naive Bayes", [200, 6920], [61.0, 81.0])
    assert first["error_y"]["array"] == [1.41, 0.0]
    assert (second["name"], second["x"], second["y"]) == ("UDA, texts without labels", [200], [70.0])


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


def rows(store: Store, *records: Record) -> list[list[str]]:
    """The rows of the only table."""
    (found,) = tables(page(store, *records))
    return found[1:]


@pytest.mark.parametrize(
    "other",
    [
        {"settings": {"hidden": 50}},
        {"settings": {"parents": {"weights": {"architecture": "uda", "key": "a" * 16, "row": "b" * 16, "task": "x"}}}},
        {"architecture_version": 2},
        {"devices": 2},
        {"data": {"test": "u" * 64, "dev": "e" * 64}},
        {"data": {"test": "t" * 64, "dev": "d" * 64}},
    ],
    ids=("settings", "parents", "version", "devices", "test", "dev"),
)
def test_a_model_with_other_settings_or_another_test_is_another_line(store, other):
    """Each of both has one number of labels: joined, a larger model would look like the worth of
    labels."""
    known = {"data": {"test": "t" * 64, "dev": "e" * 64}}
    found = rows(store, trained("uda", 50, 0.5, **known), trained("uda", 200, 0.8, **known | other))
    assert sorted(row[2:] for row in found) == [["50.0 (1)", "–"], ["–", "80.0 (1)"]]
    assert len({row[1] for row in found}) == 2, "each says what it is"


def test_of_two_numbers_of_training_examples_of_the_users_own_each_has_a_line(store):
    """The budget of both is called custom."""
    records = [trained("uda", labels, 0.5, limits={"max_train": labels * 2}) for labels in (50, 200)]
    assert [row[1] for row in rows(store, *records)] == [
        "at most 100 training examples",
        "at most 400 training examples",
    ]


def test_of_two_settings_with_all_labels_that_one_is_joined_which_was_cut(store):
    found = rows(
        store,
        trained("uda", 50, 0.5, settings={"hidden": 50}),
        trained("uda", None, 0.7),
        trained("uda", None, 0.8, settings={"hidden": 50}),
    )
    assert found == [["UDA", "–", "50.0 (1)", "80.0 (1)"]]


def test_both_settings_are_named_where_both_were_cut(store):
    made = page(store, *(trained("uda", n, 0.5, settings={"hidden": size}) for n in (50, None) for size in (50, 100)))
    assert [row[:2] for row in tables(made)[0][1:]] == [["UDA", "100 hidden units"], ["UDA", "50 hidden units"]]
    assert sorted(line["name"] for line in made[0].parts["plots"][0].data) == [
        "UDA, 100 hidden units",
        "UDA, 50 hidden units",
    ]


def test_who_reads_the_texts_that_lost_their_labels_has_a_line_to_all_of_them(store):
    """With all labels there is no other text to read."""
    found = rows(
        store,
        trained("uda", 50, 0.5, sees=[WITHOUT_LABELS, "texts of test"]),
        trained("uda", None, 0.8, sees=["texts of test"]),
        trained("uda", None, 0.7, seed=1),
    )
    assert found == [["UDA", "texts without labels, texts of test", "50.0 (1)", "80.0 (1)"]]


def test_the_steps_and_passes_that_few_labels_get_at_least_part_no_line(store):
    """The budget small of AG News makes 375 steps at least, and 500 with a number of labels; its
    whole one makes one pass, and asks dev four times with a number of labels."""
    small = {"max_train": 1500, "budget": "small"}
    few = {"min_steps": LABELLED_STEPS, "epochs": LABELLED_PASSES}
    found = rows(
        store,
        trained("uda", 50, 0.5, limits=small, settings={"training": few}),
        trained("uda", None, 0.8, limits=small, settings={"training": {"min_steps": 375, "epochs": 1}}),
    )
    assert found == [["UDA", "–", "50.0 (1)", "80.0 (1)"]]


def test_two_results_of_one_number_of_labels_are_both_shown(store):
    found = rows(
        store,
        trained("uda", 50, 0.5, settings={"training": {"min_steps": 100}}),
        trained("uda", 50, 0.6, settings={"training": {"min_steps": 200}}),
        trained("uda", None, 0.8, settings={"training": {"min_steps": 0}}),
    )
    assert sorted(row[2] for row in found) == ["50.0 (1)", "60.0 (1)"]


def test_what_did_not_end_well_is_shown(store):
    failed = trained("uda", 200, None, status="timeout", error={"type": "timeout", "message": "no time"})
    made = page(store, trained("uda", 50, 0.5), failed)
    assert tables(made)[0][1:] == [["UDA", "–", "50.0 (1)", "timeout"]]


def test_what_failed_before_it_read_the_data_is_in_its_line_and_no_point_of_the_plot(store):
    failed = trained("uda", 50, None, status="oom", error={"type": "oom", "message": "no room"})
    ok = [trained("uda", number, 0.7, data={"test": "t" * 64, "dev": "d" * 64}) for number in (200, None)]
    made = page(store, failed, *ok)
    assert tables(made)[0][1:] == [["UDA", "–", "oom", "70.0 (1)", "70.0 (1)"]]
    assert made[0].parts["plots"][0].data[0]["y"][0] == 70.0


def test_who_has_only_all_labels_is_left_out(store):
    """Seventy rows of all labels would hide the four that say something here."""
    made = page(store, trained("naive_bayes", 50, 0.5), trained("naive_bayes", None, 0.8), trained("uda", None, 0.8))
    assert [row[0] for row in tables(made)[0][1:]] == ["Naive Bayes"]


@pytest.mark.parametrize("labels", [[None], [200]])
def test_without_two_numbers_of_labels_there_is_no_page(store, labels):
    assert page(store, *(trained("uda", number, 0.7) for number in labels)) == []


def test_floors_are_there_to_read_the_others_by(store):
    """A floor needs no labels: of all of them or of none it is the same line."""
    made = page(
        store,
        trained("naive_bayes", 50, 0.5, data={"test": "t" * 64}),
        trained("naive_bayes", 200, 0.6, data={"test": "t" * 64}),
        trained("floor_majority", None, 0.499, data={"test": "t" * 64}),
        trained("floor_random", None, 0.45, data={"test": "t" * 64}),
    )
    assert [row[0] for row in tables(made)[0][1:]] == ["floor: chance", "floor: most frequent", "Naive Bayes"]
    layout = made[0].parts["plots"][0].layout
    assert [shape["y0"] for shape in layout["shapes"]] == [49.9]


def test_what_does_not_fit_is_no_row(store):
    unfit = {"status": "skipped", "error": {"type": "unfit", "message": "tasks of type classify have no such floor"}}
    made = page(
        store,
        trained("naive_bayes", 50, 0.5),
        trained("naive_bayes", 200, 0.6),
        trained("floor_random", None, None, **unfit),
    )
    assert [row[0] for row in tables(made)[0][1:]] == ["Naive Bayes"]


def test_smoke_runs_are_left_out(store):
    assert page(store, *(trained("uda", number, 0.7, protocol="smoke") for number in (50, 200))) == []


def test_the_page_can_be_read(store):
    made = page(store, trained("naive_bayes", 50, 0.5), trained("naive_bayes", 200, 0.6))
    assert "Naive Bayes" in html_of(made[0]) and "200 labels" in html_of(made[0])
