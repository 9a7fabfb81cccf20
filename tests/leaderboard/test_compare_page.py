"""The data of the compare page: what the reader's browser computes from it is only as right as it
is."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from harness.leaderboard.pages import compare_page as module
from harness.leaderboard.pages.compare_page import compare_page, data_script, unit_rates
from harness.records import Store
from harness.records.outcomes import Outcomes
from tests.support.made_pages import architecture, board_of, html_of, task
from tests.support.made_records import judged, record

EVIL = '</script><img src=x onerror=alert(1)>\u2028\u2029"\\'
NAMES = [architecture("dan", "Deep averaging"), architecture("bilstm", "biLSTM"), architecture("evil", EVIL)]
TASKS = [task("sst2", "classify", "accuracy"), task("fsdd", "transcribe", "wer"), task("wikiqa", "rank", "map")]


@pytest.fixture
def store(tmp_path) -> Store:
    (tmp_path / "records").mkdir()
    return Store(tmp_path)


def script(store) -> str:
    return compare_page(board_of(store, NAMES, TASKS)).beside["compare-data.js"]


def data(store) -> list[dict]:
    assignment = re.fullmatch(r"var compareData=(.*);\n", script(store))
    assert assignment, "one assignment of JSON to a global, which a page from disk can load"
    return json.loads(assignment[1])["tasks"]


def outcomes_of(fields: dict, id: str) -> dict[str, float]:
    """What the browser reads: the outcome of each unit."""
    (result,) = [each for each in fields["results"] if each["id"] == id]
    width = fields["width"]
    places = [int(result["codes"][i : i + width], 36) for i in range(0, len(result["codes"]), width)]
    return dict(zip(fields["units"], (fields["levels"][place] for place in places), strict=True))


def test_outcomes_are_shares_over_seeds_by_unit(store):
    judged(store, "110", seed=0)
    judged(store, "100", seed=1)
    judged(store, "011", architecture="bilstm")
    (fields,) = data(store)
    assert outcomes_of(fields, "dan") == {"unit-0": 1.0, "unit-1": 0.5, "unit-2": 0.0}
    assert outcomes_of(fields, "bilstm") == {"unit-0": 0.0, "unit-1": 1.0, "unit-2": 1.0}


def test_scores_intervals_and_p_are_those_of_the_evidence(store):
    """Row i of p holds the pairs with the rows above it, in the order of the results."""
    judged(store, "1" * 90 + "0" * 10)
    judged(store, "1" * 40 + "0" * 60, architecture="bilstm")
    judged(store, "1" * 91 + "0" * 9, architecture="theirs")
    (fields,) = data(store)
    assert [result["id"] for result in fields["results"]] == ["theirs", "dan", "bilstm"]
    assert [len(row) for row in fields["p"]] == [0, 1, 2]
    assert fields["p"][1][0] > 0.5 > 0.001 > fields["p"][2][1]
    assert [result["tied"] for result in fields["results"]] == [True, True, False]
    first = fields["results"][1]
    assert (first["name"], first["score"], first["mean"]) == ("Deep averaging", "90.0 (1)", 90.0)
    low, high = map(float, first["interval"].split(" to "))
    assert 80 < low < 90 < high < 97


@pytest.mark.parametrize(("seeds", "doubt"), [(1, "one seed: unknown"), (3, "")])
def test_a_place_is_doubted_as_long_as_the_seeds_are_few(store, seeds, doubt):
    """The page would else call a row behind the first that another seed might put there."""
    for seed in range(seeds):
        judged(store, "1" * 90 + "0" * 10, seed=seed)
        judged(store, "1" * 40 + "0" * 60, architecture="bilstm", seed=seed)
    (fields,) = data(store)
    assert fields["doubt"].startswith(doubt) and bool(fields["doubt"]) == bool(doubt)


def test_results_without_saved_predictions_come_last_and_have_no_interval(store):
    judged(store, "10")
    store.write(record("bilstm", score=0.9, data={"test": "t" * 64}))
    (fields,) = data(store)
    assert [(each["id"], each["interval"], "codes" in each) for each in fields["results"]] == [
        ("dan", "0.0 to 100.0", True),
        ("bilstm", None, False),
    ]


def test_a_task_without_any_saved_predictions_has_scores_alone(store):
    store.write(record(score=0.8))
    store.write(record("bilstm", status="failed"))
    (fields,) = data(store)
    assert "units" not in fields
    assert [each["id"] for each in fields["results"]] == ["dan"], "what has no score cannot be compared"


def test_tasks_and_sections_are_apart(store):
    judged(store, "10")
    judged(store, "11", protocol="paper")
    judged(store, "1", task="fsdd", metric="wer")
    assert [(each["place"], each["task"], each["lower"]) for each in data(store)] == [
        ("local/paper/full", "sst2", False),
        ("local/equal/full", "sst2", False),
        ("local/equal/full", "fsdd", True),
    ]


def test_two_settings_have_ids_that_a_link_can_hold(store):
    """A link to a comparison must not show another result when one is added."""
    made = judged(store, "10", hyperparameters={"hidden": 50})
    judged(store, "11", hyperparameters={"hidden": 100})
    (fields,) = data(store)
    assert f"dan~{made.key}" in [each["id"] for each in fields["results"]]
    assert sorted(each["name"] for each in fields["results"]) == [
        "Deep averaging (hidden=100)",
        "Deep averaging (hidden=50)",
    ]


def test_nothing_to_find_and_nothing_claimed_is_right():
    """A sentence without names is right where none was tagged, and wrong where one was."""
    units = ["a", "b"]
    quiet = Outcomes("span_f1", units, np.array([0.0, 2.0]), np.array([0.0, 4.0]), {})
    noisy = Outcomes("span_f1", units, np.array([0.0, 4.0]), np.array([1.0, 4.0]), {})
    assert unit_rates([quiet], lower=False).tolist() == [1.0, 0.5]
    assert unit_rates([noisy], lower=False).tolist() == [0.0, 1.0]
    assert unit_rates([quiet], lower=True).tolist() == [0.0, 0.5]


def test_many_levels_take_more_digits():
    rates = np.linspace(0, 1, 100).round(3)[None]
    levels, width, (codes,) = module._encode(rates)
    assert width == 2
    assert [levels[int(codes[i : i + 2], 36)] for i in range(0, 200, 2)] == rates[0].tolist()


def test_predictions_of_the_first_seed_are_short_texts(store):
    made = judged(store, "10", seed=0)
    judged(store, "01", seed=1)
    made.predictions = store.save_predictions(made, ["unit-0", "unit-1"], ["yes", "w" * 100])
    store.save_outcomes(
        made,
        made.predictions,
        ["unit-0", "unit-1"],
        Outcomes("accuracy", ["unit-0", "unit-1"], np.eye(2)[0], np.ones(2), {}),
    )
    store.write(made)
    (fields,) = data(store)
    (result,) = fields["results"]
    assert [fields["words"][i] for i in result["said"]] == ["yes", "w" * 39 + "…"]
    assert result["seed"] == 0


def test_predictions_are_left_out_where_there_are_too_many_or_they_are_no_texts(store, monkeypatch):
    """Reading thousands of them would cost the build its seconds."""
    judged(store, "10", task="wikiqa", metric="map")
    judged(store, "10")
    assert ["said" in task["results"][0] for task in data(store)] == [True, False]
    monkeypatch.setattr(module, "MAX_PREDICTIONS", 1)
    monkeypatch.setattr(module, "_predictions", lambda *_: pytest.fail("read all the same"))
    assert not any("said" in task["results"][0] for task in data(store))


def test_a_text_cannot_end_the_script(store):
    assert json.loads(data_script("x", {"a": EVIL})[len("var x=") : -2]) == {"a": EVIL}
    judged(store, "10", architecture="evil", hyperparameters={"inner": EVIL})
    judged(store, "11", architecture="evil", hyperparameters={"inner": "plain"})
    text = script(store)
    assert "<" not in text
    assert text.isascii(), "U+2028 ends a line of JavaScript in old browsers"
    assert any(EVIL in each["name"] for each in data(store)[0]["results"])


def test_the_page_says_what_it_needs_and_where_ids_come_from(store):
    text = html_of(compare_page(board_of(store, NAMES, TASKS)))
    assert re.search(r"<noscript>.*needs JavaScript", text, re.DOTALL)
    assert "not\ncorrected" in text or "not corrected" in text
    assert "official files of the data set" in text
    for file in ("compare-data.js", "compare.js"):
        assert f'<script src="{file}" defer></script>' in text
    assert data(store) == []


def test_the_same_records_make_the_same_bytes(store):
    judged(store, "10")
    judged(store, "11", architecture="bilstm")
    assert script(store) == script(store)
