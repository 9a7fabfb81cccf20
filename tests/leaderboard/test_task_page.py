"""A task's page, the front page and published notes, against records made by hand: who leads, by
how much, and at what cost."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest

import leaderboard
from harness.errors import LeaderboardError
from harness.leaderboard.board import read
from harness.leaderboard.pages.front_page import best_table
from harness.leaderboard.pages.plots import CostPoint, front, task_plots
from harness.leaderboard.pages.runs_page import missing_table
from harness.leaderboard.pages.task_page import task_tables
from harness.leaderboard.published import SOURCES, read_published, with_notes
from harness.leaderboard.ranking import ranks
from harness.leaderboard.results import Section
from harness.leaderboard.tables.table import Table
from harness.records import Record, Store
from tests.support.made_pages import architecture, register_alone, task
from tests.support.made_records import judged, record

SECTION = Section("local", "equal")
EVIL = "<img src=x onerror=alert(1)>"
NO_FLOOR = (
    "No floor was run on this test: these rows may be no better than an answer without any training (archbench run"
    " -a 'floor_*' -t sst2 --tier local shows it)."
)


@pytest.fixture(autouse=True)
def known(monkeypatch):
    """Four architectures of four families and two tasks."""
    architectures = [
        architecture("dan", "DAN", family="feedforward"),
        architecture("bilstm", "BILSTM", kind="seq"),
        architecture("nse", EVIL, family="memory"),
        architecture("bert", "BERT", family="pretrained"),
    ]
    register_alone(
        monkeypatch, architectures, [task("sst2", "classify", "accuracy"), task("fsdd", "transcribe", "wer")]
    )


def board(store: Store, *records: Record):
    for made in records:
        store.write(made)
    return read(store.folder)


def cell(table: Table, row: str, column: str, block: int = 0) -> list[str]:
    """The lines of one cell."""
    at = table.columns.index(column) - 1
    found = next(each for each in table.blocks[block].rows if each.name == row)
    return [part.text for part in found.cells[at]]


# --- who leads ---


def judged_thrice(store: Store, *right: int, of: int = 100, **fields) -> None:
    """Records of three seeds that are right on the first so many of the examples."""
    for seed, count in enumerate(right):
        judged(store, "1" * count + "0" * (of - count), seed=seed, **fields)


def test_a_lead_of_one_example_in_a_hundred_is_shared_and_one_of_fifty_is_not(store):
    """A bold number alone would sell chance as progress."""
    for name, right in (("dan", (88, 89, 90)), ("bilstm", (91, 90, 89)), ("bert", (40, 41, 39))):
        judged_thrice(store, *right, architecture=name)
    [table] = task_tables(read(store.folder), "sst2")
    assert [cell(table, name, "rank") for name in ("BILSTM", "DAN", "BERT")] == [
        ["1, shares first place"],
        ["1, shares first place (p 0.33)"],
        ["3 (p < 0.001)"],
    ]
    assert table.lead == [
        "Budget full: all examples.",
        "2 of 3 results tested share the first place, because they are not significantly worse than the best:"
        " BILSTM; DAN. Pairs of these results that are told apart at all: 2 of 3.",
        NO_FLOOR,
    ]
    low, high = map(float, cell(table, "BILSTM", "95 % interval")[0].split(" to "))
    assert 80 < low < 90 < high < 97
    summary = best_table(read(store.folder))
    assert cell(summary, "SST-2", "best") == ["BILSTM"]
    assert cell(summary, "SST-2", "verdict") == ["not decided: 1 more cannot be told from it"]
    assert cell(summary, "SST-2", "compared") == ["3 of 3"]


def test_a_lead_that_is_more_than_chance_is_called_so(store):
    judged_thrice(store, 95, 94, 96, architecture="dan")
    judged_thrice(store, 40, 41, 39, architecture="bilstm")
    [table] = task_tables(read(store.folder), "sst2")
    assert cell(table, "DAN", "rank") == ["1"]
    assert table.lead == [
        "Budget full: all examples.",
        "The lead of DAN is significant: each of the other results tested here (1) is significantly worse, on other"
        " test examples and with other seeds. Pairs of these results that are told apart at all: 1 of 1.",
        NO_FLOOR,
    ]
    assert cell(best_table(read(store.folder)), "SST-2", "verdict") == ["better than the other"]


@pytest.mark.parametrize(
    ("seeds", "words", "alone"),
    [
        ((1, 1), "One seed: unknown whether another would keep the order", "By the test examples alone"),
        ((2, 2), "Two seeds: unknown whether others would keep the order", "As far as these seeds tell"),
        (
            (3, 1),
            "1 of 2 results with fewer than 3 seeds: unknown whether others would keep the order",
            "As far as these seeds tell",
        ),
    ],
)
def test_a_lead_of_too_few_seeds_is_never_called_significant(store, seeds, words, alone):
    """Eight of thirteen first places stood on one seed, five of them as more than chance."""
    judged_thrice(store, *(95, 94, 96)[: seeds[0]], architecture="dan")
    judged_thrice(store, *(40, 41, 39)[: seeds[1]], architecture="bilstm")
    made = read(store.folder)
    [table] = task_tables(made, "sst2")
    assert table.lead[1:] == [
        f"{words}. {alone}, each of the other results tested here (1) is behind DAN. Pairs of these results that are"
        " told apart at all: 1 of 1.",
        NO_FLOOR,
    ]
    assert cell(best_table(made), "SST-2", "verdict") == [f"not decided: {words[0].lower()}{words[1:]}"]
    shown = " ".join([*table.lead, *cell(table, "DAN", "rank"), *cell(table, "BILSTM", "rank")])
    assert "significant" not in shown and "real" not in shown


def test_one_seed_names_those_that_share_the_first_place_as_far_as_examples_tell(store):
    for name, right in (("dan", 89), ("bilstm", 90), ("bert", 40)):
        judged_thrice(store, right, architecture=name)
    made = board(store, record("nse", score=0.9, data={"test": "t" * 64}))
    [table] = task_tables(made, "sst2")
    assert table.lead[1:] == [
        "One seed: unknown whether another would keep the order. By the test examples alone, 2 of 3 results tested"
        " share the first place: BILSTM; DAN. Pairs of these results that are told apart at all: 2 of 3. Not tested,"
        " because outcomes of these examples are missing: 1.",
        NO_FLOOR,
    ]
    assert cell(best_table(made), "SST-2", "verdict") == [
        "not decided: one seed: unknown whether another would keep the order"
    ]
    assert cell(best_table(made), "SST-2", "compared") == ["3 of 4"]


def test_without_saved_predictions_nothing_is_said_of_chance(store):
    """A dash, not an interval made up from a normal law or a lead that nobody tested."""
    made = board(store, record("dan", score=0.9), record("bilstm", score=0.5))
    [table] = task_tables(made, "sst2")
    assert cell(table, "DAN", "95 % interval") == ["–"]
    assert cell(table, "DAN", "rank") == ["1"]
    assert table.lead == ["Budget full: all examples.", NO_FLOOR]
    assert cell(best_table(made), "SST-2", "verdict") == ["not tested"]


def test_a_single_result_with_predictions_has_no_lead_to_speak_of(store):
    """The best of one beats nobody."""
    judged(store, "1" * 9 + "0", architecture="dan")
    made = board(store, record("bilstm", score=0.5, data={"test": "t" * 64}))
    assert cell(best_table(made), "SST-2", "verdict") == ["not tested"]
    assert "cannot be tested" in task_tables(made, "sst2")[0].lead[1]


def test_equal_scores_share_a_rank_and_partial_ones_have_none(store):
    """1, 1, 3 as in sport; a model of less training data was not in the race."""
    made = board(
        store,
        record("dan", score=0.8101),
        record("bilstm", score=0.8104),
        record("bert", score=0.7),
        record("nse", score=0.99, partial=True, counts={"train": 10}),
    )
    [table] = task_tables(made, "sst2")
    shown = {row.name: row.cells[table.columns.index("rank") - 1][0].text for row in table.blocks[0].rows}
    assert shown == {"DAN": "1", "BILSTM": "1", "BERT": "3", EVIL: "–"}


def test_the_lowest_error_rate_has_the_first_rank(store):
    made = board(store, record("dan", "fsdd", {"wer": 0.3}), record("bilstm", "fsdd", {"wer": 0.2}))
    names = {result: architecture for architecture, result in made.results(SECTION, "fsdd")}
    places = {names[result]: rank for result, rank in ranks(made, SECTION, "fsdd", "wer").items()}
    assert places == {"bilstm": 1, "dan": 2}


# --- a table that sorts ---


def test_every_section_is_a_table_of_its_own(store):
    """Sorting within one table must never mix the real corpus with the generated one."""
    tables = task_tables(
        board(store, record(score=0.8), record(score=0.9, tier="mini"), record(score=0.7, protocol="paper")), "sst2"
    )
    assert [table.title for table in tables] == [
        "SST-2: quality and cost, tier local, protocol equal, budget full",
        "SST-2: quality and cost, tier local, protocol paper, budget full",
        "SST-2: quality and cost, tier mini (generated corpus, not the published data), protocol equal, budget full",
    ]
    assert all(table.sortable and [block.title for block in table.blocks] == [""] for table in tables)


def test_numbers_sort_by_value_and_what_has_none_says_so(store, capsys):
    """As text, 9 comes after 10, and 1.5 M after 200 k."""
    costs = {
        "parameters": {"total": 1500000},
        "flops_per_example": 2.5e6,
        "speed": {"train_examples_per_second": 1234.5},
    }
    failed = record("bilstm", status="oom", error={"type": "E", "message": "no memory"})
    board(store, record("dan", score=0.8, **costs), record("bert", score=0.0), failed)
    leaderboard.main(["--results", str(store.folder)])
    page = (store.folder / "leaderboard" / "task-sst2.html").read_text(encoding="utf-8")
    table = re.search(r"<table data-sortable.*?</table>", page, re.DOTALL)[0]
    columns = [re.sub("<.*?>", "", th) for th in re.findall(r"<th scope=\"col\".*?</th>", table)]
    rows = [
        re.findall(r"<td(.*?)>", row) for row in re.findall(r"<tr[^>]*>\s*<th scope=\"row\".*?</tr>", table, re.DOTALL)
    ]
    orders = [[re.search(r'data-order="(.*?)"', attributes) for attributes in row] for row in rows]
    words = {"family", "kind", "device"}
    for row in orders:
        assert {name for name, order in zip(columns[1:], row, strict=True) if order is None} == words
    first = {name: order and order[1] for name, order in zip(columns[1:], orders[0], strict=True)}
    assert (first["accuracy"], first["parameters"], first["FLOPs/example"]) == ("80.0", "1500000.0", "2500000.0")
    assert first["training examples/s"] == "1234.5"
    assert {name: order and order[1] for name, order in zip(columns[1:], orders[1], strict=True)}[
        "accuracy"
    ] == "0.0", "zero is a score"
    assert {order[1] for order in orders[2] if order} == {""}
    assert re.findall(r"data-filter[^>]*>(.*?)</th>", table) == ["family", "kind"]
    assert len(re.findall(r"<th(?![^>]*data-more)[^>]*scope=\"col\"", table)) == 8, "more do not fit a screen"
    assert re.findall(r"data-lower[^>]*>(.*?)</th>", table)[:3] == ["rank", "parameters", "latency, ms"]


def test_unsteady_rows_are_found_by_their_deviation_over_seeds(store):
    """The means of two rows were alike, and one of them failed to learn in a third of its runs."""
    made = [record("dan", score=score, seed=seed) for seed, score in enumerate((0.7, 0.8, 0.9))]
    made += [record("bilstm", score=0.8, seed=seed) for seed in range(3)]
    [table] = task_tables(board(store, *made, record("nse", score=0.8)), "sst2")
    at = table.columns.index("± over seeds")
    assert at in table.more
    found = {row.name: (row.cells[at - 1][0].text, row.cells[at - 1][0].order) for row in table.blocks[0].rows}
    assert found == {"DAN": ("10.0", pytest.approx(10.0)), "BILSTM": ("0.0", pytest.approx(0)), EVIL: ("–", None)}


# --- plots ---


def test_the_pareto_front_is_what_no_other_beats_in_both():
    """A dominated point on the line would be recommended to somebody who pays for it."""
    points = [
        CostPoint(cost, score, 0.0, str(cost), "")
        for cost, score in ((1, 90), (2, 80), (2, 85), (3, 90), (4, 70), (5, 60))
    ]
    assert [(p.cost, p.score) for p in front(points[1:], lower_is_better=False)] == [(2, 85), (3, 90)]
    assert [(p.cost, p.score) for p in front(points, lower_is_better=False)] == [(1, 90)]
    assert [(p.cost, p.score) for p in front(points, lower_is_better=True)] == [
        (1, 90),
        (2, 80),
        (4, 70),
        (5, 60),
    ]
    assert front([], lower_is_better=True) == []


def test_plots_hold_the_values_of_the_records(store):
    curve = [{"epoch": 1, "accuracy": 0.5, "train_loss": 1.25}, {"epoch": 2, "accuracy": 0.75, "train_loss": None}]
    shared = {
        "flops_per_example": 100.0,
        "parameters": {"total": 1000},
    }
    later = [row | {"accuracy": row["accuracy"] + 0.1} for row in curve]
    made = board(
        store,
        record("dan", score=0.80, training={"curve": curve}, **shared),
        record("dan", score=0.82, seed=1, training={"curve": later}, **shared),
        record("bilstm", score=0.7, parameters={"total": 0}, flops_per_example=10.0),
        record("count", score=0.6, parameters={"total": 500}),
        record("bert", status="oom"),
    )
    plots = {plot.title.partition(":")[0]: plot for plot in task_plots(made, "sst2")}
    assert set(plots) == {
        "Quality against FLOPs of one example",
        "Quality against parameters",
        "Learning curves, score on dev",
        "Learning curves, training loss",
        "All seeds of results with several",
    }
    edge, *groups = plots["Quality against FLOPs of one example"].data
    assert (edge["name"], edge["x"], edge["y"]) == ("Pareto front", [10.0, 100.0], [70.0, 81.0])
    assert edge["text"] == ["BILSTM", "DAN"]
    assert [(g["name"], g["x"], g["y"], g["text"]) for g in groups] == [
        ("feedforward", [100.0], [81.0], ["DAN (2 seeds)<br>accuracy (%)"]),
        ("recurrent", [10.0], [70.0], ["BILSTM (1 seed)<br>accuracy (%)"]),
    ]
    hover = "%{text}: %{y:.1f}<br>%{x:,.4g} FLOPs of one example<extra></extra>"
    assert {g["hovertemplate"] for g in groups} == {hover}
    assert groups[0]["error_y"]["array"] == [1.41]
    _, *groups = plots["Quality against parameters"].data
    assert sorted(group["x"] for group in groups) == [[500.0], [1000.0]], "no logarithm of nothing"
    [band, line] = plots["Learning curves, score on dev"].data
    assert (line["name"], line["x"], line["y"]) == ("DAN (2 seeds)", [1, 2], [55.0, 80.0])
    assert list(zip(band["x"], band["y"], strict=True)) == [(1, 60.0), (2, 85.0), (2, 75.0), (1, 50.0)]
    [_, line] = plots["Learning curves, training loss"].data
    assert (line["x"], line["y"]) == ([1], [1.25])
    [seeds] = plots["All seeds of results with several"].data
    assert (seeds["x"], seeds["y"], seeds["text"]) == ([80.0, 82.0], ["DAN", "DAN"], ["seed 0", "seed 1"])
    for plot in plots.values():
        assert plot.layout["xaxis"]["title"]["text"]
        assert plot.layout["yaxis"].get("title", {}).get("text") or plot.layout["yaxis"]["type"] == "category"


def test_a_curve_counts_passes_where_an_epoch_has_several(store):
    """Of 50 labels an epoch has 93 passes: nine epochs were drawn as nine passes."""
    curve = [{"epoch": 1, "accuracy": 0.5}, {"epoch": 2, "accuracy": 0.75}]
    made = board(store, record("dan", score=0.8, training={"curve": curve, "passes_per_epoch": 93}))
    (line,) = next(plot.data for plot in task_plots(made, "sst2") if plot.id.startswith("dev-"))
    assert line["x"] == [93, 186]


def test_names_in_plots_are_text_and_not_markup_or_templates(store):
    """Plotly reads tags in every text, and %{...} in hover templates."""
    curve = {"curve": [{"epoch": 1, "accuracy": 0.5, "train_loss": 1.0}]}
    made = board(
        store,
        *(
            record("nse", score=0.5, seed=s, training=curve, flops_per_example=1.0, hyperparameters={"a": "%{x}"})
            for s in range(2)
        ),
    )
    for plot in task_plots(made, "sst2"):
        text = json.dumps([plot.data, plot.layout])
        assert "<img" not in text
        assert html.escape(EVIL) in text
        assert all(EVIL not in trace.get("hovertemplate", "") for trace in plot.data)


# --- the front page ---


def test_what_failed_is_listed_with_its_reason(store):
    made = board(
        store,
        record("dan", score=0.8),
        record("bilstm", status="oom", error={"type": "MemoryError", "message": "12 GiB wanted"}),
        record("nse", status="skipped", error={"type": "Absent", "message": "no file"}),
        record("bert", status="skipped", error={"type": "unfit", "message": "reads no text"}),
        record("dan", "fsdd", {"wer": 0.5}),
    )
    table = missing_table(made)
    assert cell(table, "BILSTM", "how it ended") == ["oom"]
    assert cell(table, "BILSTM", "reason") == ["oom: MemoryError: 12 GiB wanted"]
    assert cell(table, EVIL, "reason") == ["skipped: Absent: no file"]
    assert [row.name for row in table.blocks[0].rows] == ["BILSTM", EVIL], "what does not fit is no failure"
    assert table.lead == [
        "Not run in tier local, protocol equal, budget full: 2 pairs of an architecture and a task that fit."
    ]


# --- notes on printed values ---


def notes(tmp_path, *lines: str) -> Path:
    file = tmp_path / "published_notes.csv"
    file.write_text(
        "\n".join(["survey_table,architecture,dataset,metric,note,counterpart,misprint", *lines]) + "\n",
        encoding="utf-8",
    )
    return file


PUBLISHED = SOURCES / "published.csv"


def test_notes_go_to_the_values_that_they_name(tmp_path):
    values = with_notes(
        read_published(PUBLISHED),
        notes(
            tmp_path,
            '3,spanbert,squad2,,"two figures, one note",,likely',
            "1,bert,,,base,bert_base,",
            "4,bert,wikiqa,map,no size,none,",
        ),
    )
    noted = {(v.table, v.architecture, v.dataset, v.metric): (v.notes, v.counterpart) for v in values if v.notes}
    assert noted["3", "spanbert", "squad2", "f1"] == (("two figures, one note",), "spanbert")
    assert noted["1", "bert", "sst2", "accuracy"] == (("base",), "bert_base")
    assert noted["4", "bert", "wikiqa", "map"] == (("no size",), "")
    assert len(noted) == 2 + 6 + 1
    assert {(v.architecture, v.dataset) for v in values if v.misprint} == {("spanbert", "squad2")}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1,nobody,,,a note,,", r"published_notes.csv:3: there is no published value of 1, nobody"),
        (
            "2,bert,sst2,accuracy,in the wrong table,,",
            r"published_notes.csv:3: there is no published value of 2, bert, sst2, accuracy",
        ),
        ("1,bert,,, ,,", r"published_notes.csv:3: the note is empty"),
        ("1,bert,,,one, two,three,four", r"published_notes.csv:3: expected 7 fields"),
        ("1,bert", r"published_notes.csv:3: expected 7 fields"),
        ("1,bert,,,a note,,perhaps", r"published_notes.csv:3: misprint 'perhaps' is neither likely nor empty"),
    ],
)
def test_a_note_that_fits_nothing_is_named_by_line(tmp_path, line, message):
    """A misspelt id would make the note vanish without a word."""
    with pytest.raises(LeaderboardError, match=message):
        with_notes(read_published(PUBLISHED), notes(tmp_path, "1,nse,,,fine,,", line))


def test_the_columns_of_the_notes_are_checked(tmp_path):
    file = tmp_path / "published_notes.csv"
    file.write_text("architecture,note\n", encoding="utf-8")
    with pytest.raises(
        LeaderboardError, match=r"published_notes.csv: the columns are \['architecture', 'note'\], expected"
    ):
        with_notes(read_published(PUBLISHED), file)


def test_the_notes_of_the_repository_fit_and_stand_at_the_printed_values(store, capsys):
    board(store, record("bert", score=0.79))
    leaderboard.main(["--results", str(store.folder)])
    text = (store.folder / "leaderboard" / "tables.md").read_text(encoding="utf-8")
    spanbert = next(line for line in text.splitlines() if line.startswith("| SpanBERT"))
    assert re.search(r"71\.31<sup>\d+</sup> \| 73\.70<sup>\d+</sup>", spanbert)
    assert not re.search(r"94\.60<sup>", spanbert), "that value is in order"
    [ours] = [
        line for line in text.partition("ours alone")[2].split("\n## ")[0].splitlines() if line.startswith("| BERT")
    ]
    assert "93.50" not in ours, "our small BERT without pre-training is not what the survey prints as BERT-base"


def test_the_published_value_of_bert_base_is_compared_with_bert_base(store):
    found = read(store.folder).counterparts
    assert found["bert_base", "sst2", "accuracy"].percent == "93.50"
    assert not [key for key in found if key[0] == "bert"]


def test_what_has_no_score_at_all_comes_behind_what_has_one(store):
    """A page began with 23 timeouts."""
    store.write(record("dan", status="timeout"))
    store.write(record("bilstm", score=0.8, sees=["texts without labels"]))
    tables = task_tables(board(store), "sst2")
    assert ["texts without labels" in table.title for table in tables] == [True, False]


def test_a_long_page_has_a_list_of_its_tables(store):
    for number in range(6):
        store.write(record("dan", score=0.8, seed=number, sees=[f"thing {number}"]))
    leaderboard.main(["--results", str(store.folder)])
    page = (store.folder / "leaderboard" / "task-sst2.html").read_text(encoding="utf-8")
    assert re.search(r"The \d+ tables of this page", page)
    ids = re.findall(r'<li><a href="#(results-[^"]+)"', page)
    assert len(ids) >= 6 and all(f'<section id="{id}">' in page for id in ids)
