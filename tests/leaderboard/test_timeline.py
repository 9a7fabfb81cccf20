"""Families over time and ranks across tasks: pictures that a reader takes for the field's
history."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from harness.leaderboard.over_tasks import Ranks
from harness.leaderboard.pages import mean_ranks
from harness.leaderboard.pages.mean_ranks import groups, ranked_scores
from harness.leaderboard.pages.timeline import YearPoint, best_so_far, story_page
from harness.leaderboard.published import Published
from harness.leaderboard.results import Section
from harness.records import Store
from tests.support.made_pages import architecture, board_of, html_of, task
from tests.support.made_records import record

EVIL = "<img src=x onerror=alert(1)></script>\u2028"
SECTION = Section("local", "equal")
NAMES = [
    architecture("count", "Counting", family="classical", year=1990),
    architecture("bilstm", "biLSTM", year=2005),
    architecture("dan", "Deep averaging", family="feedforward", year=2015, paper="Iyyer 2015"),
]
TASKS = [task(id, "classify", "accuracy") for id in ("sst2", "sst5", "ag_news", "imdb", "yelp2")] + [
    task("fsdd", "transcribe", "wer")
]


@pytest.fixture
def store(tmp_path) -> Store:
    (tmp_path / "records").mkdir()
    (tmp_path / "catalogue.csv").write_text(
        "id,name,year,paper,source,family,kind,wave,defining_mechanism,home,home_reason\nxlnet,XLNet,2019,"
        "Yang 2019,S,pretrained,plm,4,m,sst2,in the paper\n",
        encoding="utf-8",
    )
    return Store(tmp_path)


def published(architecture: str, printed: str, dataset: str = "sst2") -> Published:
    return Published("1", architecture, f"{architecture} [1]", dataset, "accuracy", printed, False)


def board(store, *values, names=NAMES):
    return board_of(store, names, TASKS, *values)


def stories(store, *values, names=NAMES):
    return story_page(board(store, *values, names=names)).parts["tasks"]


def three(store, **fields) -> None:
    for name, score in (("count", 0.7), ("bilstm", 0.6), ("dan", 0.8)):
        store.write(record(name, score=score, **fields))


def points(plot) -> dict[str, list[tuple[int, float]]]:
    return {trace["name"]: list(zip(trace["x"], trace["y"], strict=True)) for trace in plot.data}


def test_ours_and_published_stand_at_the_year_of_the_architecture(store):
    """A published value takes its year from the registered architecture, or from the catalogue
    where it is not built here."""
    three(store)
    (only,) = stories(store, published("dan", "83.2"), published("xlnet", "96.8"), published("nobody", "50.0"))
    assert only.title == "SST-2: tier local, protocol equal, budget full"
    assert points(only.plot) == {
        "best published so far": [(2015, 83.2), (2019, 96.8)],
        "best of ours so far": [(1990, 70.0), (2005, 70.0), (2015, 80.0)],
        "classical, ours": [(1990, 70.0)],
        "recurrent, ours": [(2005, 60.0)],
        "feedforward, ours": [(2015, 80.0)],
        "feedforward, published": [(2015, 83.2)],
        "pretrained, published": [(2019, 96.8)],
    }
    assert "3 results of ours, 2 published values. 1 more has no known year and is left out." in only.lead
    (mine,) = [trace for trace in only.plot.data if trace["name"] == "feedforward, ours"]
    assert mine["text"] == ["Deep averaging (ours, 1 seed, 1,000 examples)<br>Iyyer 2015"]
    assert only.plot.layout["xaxis"]["title"]["text"] == "year of the paper"
    assert only.plot.layout["yaxis"]["title"]["text"] == "accuracy, %"


def test_scores_have_the_digits_of_their_metric(store):
    """Correlations of .768 and .846 stood as 0.8 and 0.8."""
    for name, score in (("count", 0.768), ("bilstm", 0.846), ("dan", 0.812)):
        store.write(record(name, "similar", {"pearson": score}))
    page = story_page(board_of(store, NAMES, [task("similar", "regress", "pearson")]))
    text = html_of(page)
    assert all(f"<td>{score}</td>" in text for score in ("0.768", "0.846", "0.812"))
    hovers = [trace["hovertemplate"] for trace in page.parts["tasks"][0].plot.data if "hovertemplate" in trace]
    assert len(hovers) == 3 and all(each.endswith("%{y:.3f}<extra></extra>") for each in hovers)


def test_a_family_has_one_colour_ours_filled_and_published_open(store):
    three(store)
    (only,) = stories(store, published("dan", "83.2"))
    markers = {trace["name"]: trace.get("marker") for trace in only.plot.data}
    ours, printed = markers["feedforward, ours"], markers["feedforward, published"]
    assert ours["color"] == printed["color"]
    assert printed["symbol"] == f"{ours['symbol']}-open"


def test_for_error_rates_the_best_so_far_goes_down():
    many = [
        YearPoint(year, score, "n", "f", "", "ours", True)
        for year, score in ((2016, 5.0), (2014, 9.0), (2015, 10.0), (2016, 7.0))
    ]
    assert best_so_far(many, lower=True) == [(2014, 9.0), (2015, 9.0), (2016, 5.0)]
    assert best_so_far(many, lower=False) == [(2014, 9.0), (2015, 10.0), (2016, 10.0)]


def test_a_result_on_less_data_is_a_point_but_not_the_best_so_far(store):
    three(store)
    store.write(record("dan", score=0.99, hyperparameters={"hidden": 1}, counts={"train": 10}, partial=True))
    (only,) = stories(store)
    assert max(score for _, score in points(only.plot)["best of ours so far"]) == 80.0
    assert (2015, 99.0) in points(only.plot)["feedforward, ours"]
    assert "not ranked with the others, and values that are likely misprints, are points" in only.lead


def test_a_likely_misprint_is_a_point_but_not_the_best_so_far(store):
    """The best of MultiNLI went through 88.8, which the paper does not have."""
    wrong = replace(published("xlnet", "99.9"), misprint=True)
    (only,) = stories(store, published("dan", "83.2"), published("count", "60.0"), wrong)
    assert points(only.plot)["best published so far"] == [(1990, 60.0), (2015, 83.2)]
    assert (2019, 99.9) in points(only.plot)["pretrained, published"]


def test_a_generated_corpus_is_not_drawn_beside_published_values(store):
    three(store, tier="mini")
    titles = {
        each.title: points(each.plot)
        for each in stories(store, *(published(name, "80.0") for name in ("count", "bilstm", "dan")))
    }
    assert list(titles) == [
        "SST-2: tier mini (generated corpus, not the published data), protocol equal, budget full",
        "SST-2: published values alone",
    ]
    assert not any(
        "published" in trace
        for trace in titles["SST-2: tier mini (generated corpus, not the published data), protocol equal, budget full"]
    )


def test_a_reference_has_no_year(store):
    """It would stand at the year 0, two thousand years left of all others."""
    three(store)
    store.write(record("svm", score=0.75))
    names = [*NAMES, architecture("svm", "reference: SVM", family="classical", source="reference", year=0)]
    (only,) = stories(store, names=names)
    assert points(only.plot)["classical, ours"] == [(1990, 70.0)]
    assert "3 results of ours, 0 published values. 1 more has no known year and is left out." in only.lead


def test_two_results_or_one_year_make_no_picture(store):
    assert stories(store, *(published("dan", value) for value in ("80.0", "81.0", "82.0"))) == []
    store.write(record("count", score=0.7))
    store.write(record("dan", score=0.7))
    assert stories(store) == []


def test_unregistered_architectures_are_counted_as_left_out(store):
    three(store)
    store.write(record("theirs", score=0.9))
    (only,) = stories(store)
    assert "1 more has no known year" in only.lead
    assert len(only.rows) == 3


def test_ranks_need_results_on_the_same_amount_of_data_and_settings_chosen_on_dev(store):
    """The best of several settings on test would be chosen by what is being compared."""
    for hidden, dev, test in ((1, 0.9, 0.5), (2, 0.6, 0.95)):
        scores = {"dev": {"accuracy": dev}, "test": {"accuracy": test}}
        store.write(record("dan", hyperparameters={"hidden": hidden}, scores=scores))
    store.write(record("bilstm", score=0.7, counts={"train": 10}, partial=True))
    store.write(record("bilstm", "fsdd", {"wer": 0.3}))
    scores, metrics = ranked_scores(board(store), SECTION)
    assert scores == {"dan": {"sst2": 0.5}, "bilstm": {"fsdd": 0.3}}
    assert metrics == {"sst2": "accuracy", "fsdd": "wer"}


def test_too_few_common_tasks_are_said_to_be_too_few(store):
    three(store)
    (ranking,) = story_page(board(store)).parts["unranked"]
    assert "3 architectures have scores here, on up to 1 tasks" in ranking.lead[0]
    assert "autorank" not in ranking.lead[0]
    assert "No ranks" in html_of(story_page(board(store)))


def test_without_the_package_that_ranks_the_page_says_so(store, monkeypatch):
    """ "Architectures **and** the package autorank" told nobody which of the two was missing."""
    for name in ("count", "bilstm", "dan"):
        for each in ("sst2", "sst5", "ag_news", "imdb", "yelp2"):
            store.write(record(name, each, 0.5))
    monkeypatch.setattr(mean_ranks, "critical_difference", lambda *_: None)
    (ranking,) = story_page(board(store)).parts["unranked"]
    assert ranking.lead == ["No ranks: the package autorank is not installed; pip install 'archbench[stats]'."]


def test_bars_join_neighbours_within_the_critical_difference():
    """Each bar is as long as it may be; one that lies in another, or holds one alone, is not
    drawn."""
    assert groups([1.0, 1.5, 2.5, 4.0], cd=1.5) == [(0, 2), (2, 3)]
    assert groups([1.0, 3.0, 5.0], cd=1.0) == []
    assert groups([1.0, 1.1, 1.2], cd=5.0) == [(0, 2)]


def test_ranks_are_drawn_and_written_with_their_coverage(store, monkeypatch):
    three(store)
    for name in ("count", "bilstm", "dan"):
        store.write(record(name, "fsdd", {"wer": 0.2}))
    asked = []

    def ranks(scores, lower_is_better):
        asked.append(set(lower_is_better))
        return Ranks(["dan", "count", "bilstm"], [1.0, 2.0, 3.0], 1.25, 0.01, ["sst2", "fsdd"])

    monkeypatch.setattr(mean_ranks, "critical_difference", ranks)
    (ranking,) = story_page(board(store)).parts["rankings"]
    assert asked == [{"fsdd"}]
    assert "3 of 3 architectures have a score on each of 2 of 2 tasks (SST-2, FSDD)" in ranking.lead[0]
    assert "p = 0.01" in ranking.lead[1]
    assert "1.25 apart" in ranking.lead[1]
    assert [(row.name, [cell[0].text for cell in row.cells]) for row in ranking.table.blocks[0].rows] == [
        ("Deep averaging", ["1.00", "1"]),
        ("Counting", ["2.00", "2"]),
        ("biLSTM", ["3.00", "1"]),
    ]
    *bars, marks = ranking.plot.data
    assert [bar["x"] for bar in bars] == [[1.0, 2.0], [2.0, 3.0]]
    assert marks["x"] == [1.0, 2.0, 3.0]
    assert ranking.plot.layout["xaxis"]["title"]["text"] == "mean rank over 2 tasks (1 is the best)"


def test_means_are_of_scores_between_the_floor_and_the_best(store, monkeypatch):
    """Points of accuracy on one task and of an error rate on another have no mean."""
    ranks = Ranks(["dan", "count", "bilstm"], [1.0, 2.0, 3.0], 1.25, 0.01, ["sst2", "fsdd"])
    monkeypatch.setattr(mean_ranks, "critical_difference", lambda *_: ranks)
    three(store)
    for name, rate in (("dan", 0.2), ("count", 0.6), ("bilstm", 1.0)):
        store.write(record(name, "fsdd", {"wer": rate}))
    (without,) = story_page(board(store)).parts["rankings"]
    assert without.table.lead == ["no mean over tasks, because no floor is known of fsdd, sst2"]
    store.write(record("majority", score=0.5))
    store.write(record("majority", "fsdd", {"wer": 1.2}))
    floor = architecture("majority", "most frequent class", kind="floor")
    (ranking,) = story_page(board(store, names=[*NAMES, floor])).parts["rankings"]
    assert ranking.table.columns[-1] == "mean of normalised scores"
    assert [row.cells[-1][0].text for row in ranking.table.blocks[0].rows] == ["1.000", "0.633", "0.267"]


def test_real_ranks_are_those_of_the_scores(store):
    """Three architectures in the same order on five tasks and on one with an error rate."""
    pytest.importorskip("autorank")
    for place, name in enumerate(("dan", "bilstm", "count")):
        for each in ("sst2", "sst5", "ag_news", "imdb", "yelp2"):
            store.write(record(name, each, 0.9 - 0.1 * place))
        store.write(record(name, "fsdd", {"wer": 0.1 + 0.1 * place}))
    (ranking,) = story_page(board(store)).parts["rankings"]
    assert [(row.name, row.cells[0][0].text) for row in ranking.table.blocks[0].rows] == [
        ("Deep averaging", "1.00"),
        ("biLSTM", "2.00"),
        ("Counting", "3.00"),
    ]


def test_texts_cannot_become_markup(store):
    names = [*NAMES, architecture("evil", EVIL, family=EVIL, year=2016, paper=EVIL)]
    three(store)
    store.write(record("evil", score=0.5, hyperparameters={"inner": EVIL}))
    value = Published("1", "dan", EVIL, "sst2", "accuracy", "80.0", False)
    text = html_of(story_page(board(store, value, names=names)))
    assert "<img" not in text
    assert "&lt;img src=x" in text
    for block in re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', text, re.DOTALL):
        assert "<img" not in json.dumps(json.loads(block)), "plotly reads markup in the texts of a plot"
