"""The data of the compare page: what the reader's browser computes from it is only as right as it
is."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.leaderboard.pages import compare_page as module
from harness.leaderboard.pages.compare_page import compare_page, data_script, encode, fair_shares, unit_rates
from harness.records.outcomes import Outcomes
from tests.support.made_pages import architecture, board_of, html_of, task
from tests.support.made_records import judged, record

EVIL = '</script><img src=x onerror=alert(1)>\u2028\u2029"\\'
NAMES = [architecture("dan", "Deep averaging"), architecture("bilstm", "biLSTM"), architecture("evil", EVIL)]
TASKS = [task("sst2", "classify", "accuracy"), task("fsdd", "transcribe", "wer"), task("wikiqa", "rank", "map")]


def scripts(store) -> dict[str, str]:
    return compare_page(board_of(store, NAMES, TASKS)).beside


def assigned(name: str, script: str) -> dict:
    assignment = re.fullmatch(rf"var {name}=(.*);\n", script)
    assert assignment, "one assignment of JSON to a global, which a page from disk can load"
    return json.loads(assignment[1])


def data(store) -> list[dict]:
    """The entry of each task of a section, together with what its own file holds."""
    found = scripts(store)
    tasks = assigned("compareData", found["compare-data.js"])["tasks"]
    return [each | assigned("compareTask", found[each["file"]]) for each in tasks]


def decoded(coded: list, row: int = 0) -> list:
    """What the browser reads: the value of each unit."""
    levels, width, rows = coded
    return [levels[int(rows[row][i : i + width], 36)] for i in range(0, len(rows[row]), width)]


def outcomes_of(fields: dict, id: str) -> dict[str, float]:
    row = [each["id"] for each in fields["results"]].index(id)
    return dict(zip(fields["units"], decoded(fields["outcomes"], row), strict=True))


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
    assert [(each["id"], each["interval"]) for each in fields["results"]] == [("dan", "0.0 to 100.0"), ("bilstm", None)]
    assert len(fields["outcomes"][2]) == 1


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
        ("local/equal/full", "sst2", False),
        ("local/equal/full", "fsdd", True),
        ("local/paper/full", "sst2", False),
    ]


def test_two_settings_have_ids_that_a_link_can_hold(store):
    """A link to a comparison must not show another result when one is added."""
    made = judged(store, "10", hyperparameters={"hidden": 50})
    judged(store, "11", hyperparameters={"hidden": 100})
    (fields,) = data(store)
    assert f"dan~{made.key}" in [each["id"] for each in fields["results"]]
    assert sorted(each["name"] for each in fields["results"]) == [
        "Deep averaging (100 hidden units)",
        "Deep averaging (50 hidden units)",
    ]


def test_nothing_to_find_and_nothing_claimed_is_right():
    """A sentence without names is right where none was tagged, and wrong where one was."""
    units = ["a", "b"]
    quiet = Outcomes("span_f1", units, np.array([0.0, 2.0]), np.array([0.0, 4.0]), {})
    noisy = Outcomes("span_f1", units, np.array([0.0, 4.0]), np.array([1.0, 4.0]), {})
    assert unit_rates([quiet], lower=False).tolist() == [1.0, 0.5]
    assert unit_rates([noisy], lower=False).tolist() == [0.0, 1.0]
    assert unit_rates([quiet], lower=True).tolist() == [0.0, 0.5]


@given(st.lists(st.lists(st.integers(0, 2000), min_size=3, max_size=3), min_size=1, max_size=30))
def test_what_is_encoded_is_decoded(rows):
    coded = json.loads(json.dumps(encode(rows)))
    assert [decoded(coded, row) for row in range(len(rows))] == rows


def test_many_levels_take_more_digits():
    rates = np.linspace(0, 1, 100).round(3).tolist()
    coded = encode([rates])
    assert coded.width == 2
    assert decoded(list(coded)) == rates


def test_a_small_task_leaves_the_rest_of_its_share_to_larger_ones():
    """The first large task once took all, and those behind it showed no answer."""
    assert fair_shares([1000, 10, 700], 500) == [245, 10, 245]
    assert fair_shares([5, 6], 500) == [5, 6]
    assert fair_shares([], 500) == []


def test_the_best_results_have_their_answers_shown_where_there_are_too_many(store, monkeypatch):
    """Of three results of two units each, an allowance of five answers is enough for two."""
    judged(store, "11", architecture="bilstm")
    judged(store, "10")
    judged(store, "00", architecture="theirs")
    monkeypatch.setattr(module, "MAX_ANSWERS", 5)
    (fields,) = data(store)
    assert [each["id"] for each in fields["results"]] == ["bilstm", "dan", "theirs"]
    assert fields["answered"] == [True, True, False]


def test_answers_of_the_first_seed_are_short_texts(store):
    made = judged(store, "10", seed=0)
    judged(store, "01", seed=1)
    made.predictions = store.save_predictions(made, ["unit-0", "unit-1"], ["yes", "w" * 400])
    store.save_outcomes(
        made,
        made.predictions,
        ["unit-0", "unit-1"],
        Outcomes("accuracy", ["unit-0", "unit-1"], np.eye(2)[0], np.ones(2), {}),
    )
    store.write(made)
    (fields,) = data(store)
    assert decoded(fields["answers"]) == ["yes", "w" * 299 + "…"]
    assert fields["results"][0]["seed"] == 0


def test_right_answers_are_known_from_whoever_is_right(store):
    """A reader without the data sees them all the same, as far as the records tell."""
    judged(store, "100")
    judged(store, "010", architecture="bilstm")
    (fields,) = data(store)
    assert decoded(fields["gold"]) == ["yes", "yes", None]


def test_results_of_other_groups_say_what_they_differ_in(store):
    """Only what was trained on the same data is offered together; the reader is told why."""
    judged(store, "10")
    judged(store, "11", architecture="bilstm", counts={"train": 500})
    (fields,) = data(store)
    here, there = (next(each["group"] for each in fields["results"] if each["id"] == id) for id in ("dan", "bilstm"))
    assert fields["reasons"][here][there] == ["training data (500 examples)"]
    assert fields["reasons"][here][here] == []
    assert fields["never"] == ""


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"protocol": "smoke"}, "protocol smoke shows only that a cell runs"),
        ({"hyperparameters": {"limits": {"max_train": 7}}}, "budget custom, a user's own"),
    ],
)
def test_what_is_never_ranked_is_never_set_against_each_other(store, fields, why):
    judged(store, "10", **fields)
    judged(store, "11", architecture="bilstm", **fields)
    assert why in data(store)[0]["never"]


def test_a_text_cannot_end_the_script(store):
    assert json.loads(data_script("x", {"a": EVIL})[len("var x=") : -2]) == {"a": EVIL}
    judged(store, "10", architecture="evil", hyperparameters={"inner": EVIL})
    judged(store, "11", architecture="evil", hyperparameters={"inner": "plain"})
    text = "".join(scripts(store).values())
    assert "<" not in text
    assert text.isascii(), "U+2028 ends a line of JavaScript in old browsers"
    assert any(EVIL in each["name"] for each in data(store)[0]["results"])


def test_the_page_says_what_it_needs(store):
    text = html_of(compare_page(board_of(store, NAMES, TASKS)))
    assert re.search(r"<noscript>.*needs JavaScript", text, re.DOTALL)
    assert "not\ncorrected" in text or "not corrected" in text
    for file in ("archbench.js", "compare-data.js", "compare.js"):
        assert f'<script src="{file}" defer></script>' in text
    assert data(store) == []
