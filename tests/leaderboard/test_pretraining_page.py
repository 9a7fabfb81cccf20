"""The page of pre-training: who pays for a parent reads there what it brought, at which cost."""

from __future__ import annotations

import json
import math

import pytest

from harness.leaderboard.pages.plots import line_with_deviations
from harness.leaderboard.pages.pretraining_page import pretraining_page
from harness.leaderboard.summary import summarise
from harness.metrics import display_info
from harness.records import Record, Store
from tests.support.made_pages import architecture, board_of, cells, html_of, task
from tests.support.made_records import record

NAMES = [architecture("roberta", "RoBERTa"), architecture("dan", "Deep averaging")]
TASKS = [task("sst2", "classify", "accuracy")]


def ancestor(objective: str | None = "MaskedPieces", role: str = "weights", **fields) -> dict:
    known = {"key": "a" * 16, "role": role, "architecture": "roberta", "task": "text_mix", "tokens": 5000, "flops": 4e9}
    return known | ({"objective": objective} if objective else {}) | fields


def tuned(score: float, *lineage: dict, seed: int = 0, **fields) -> Record:
    parents = {
        each["role"]: {name: each[name] for name in ("architecture", "key", "task")} | {"row": each["key"]}
        for each in lineage
    }
    settings = {"hidden": 100, **({"parents": parents} if lineage else {}), **fields.pop("settings", {})}
    known = {
        "architecture": "roberta",
        "data": {"test": "t" * 64},
        "spent": {"flops": 1e9},
        "hyperparameters": settings,
    }
    return record(score=score, seed=seed, **({"lineage": list(lineage)} if lineage else {}), **known | fields)


def page(store: Store, *records: Record):
    for each in records:
        store.write(each)
    return pretraining_page(board_of(store, NAMES, TASKS))


def test_a_child_stands_beside_its_architecture_from_random_weights(store):
    found = cells(
        page(store, tuned(0.70), tuned(0.72, seed=1), tuned(0.80, ancestor()), tuned(0.84, ancestor(), seed=1))
    )
    assert found == [
        ["RoBERTa", "random weights", "–", "1 G", "71.0 ± 1.4 (2)", "–"],
        ["RoBERTa", "masked pieces", "5 k", "5 G", "82.0 ± 2.8 (2)", "+11.0"],
    ]


def test_a_score_at_the_floor_says_so(store):
    """A gain of twenty points over a network that learnt nothing says nothing of what it had learnt
    before."""
    for each in (record("majority", score=0.5, data={"test": "t" * 64}), tuned(0.5), tuned(0.8, ancestor())):
        store.write(each)
    names = [*NAMES, architecture("majority", "floor: most frequent class", kind="floor")]
    found = cells(pretraining_page(board_of(store, names, TASKS)))
    assert [row[4] for row in found] == ["50.0 (1) at the floor", "80.0 (1)"]


def test_a_whole_chain_is_paid_for_and_named(store):
    chain = ancestor(), ancestor("ReplacedPieces", key="b" * 16, flops=2e9, tokens=1000)
    assert cells(page(store, tuned(0.8, *chain))) == [
        ["RoBERTa", "masked pieces, then replaced pieces", "6 k", "7 G", "80.0 (1)", "–"]
    ]


@pytest.mark.parametrize(
    "other",
    [
        {"settings": {"hidden": 50}},
        {"data": {"test": "u" * 64}},
        {"protocol": "paper"},
        {"architecture_version": 2},
    ],
)
def test_only_equal_settings_on_the_same_test_are_subtracted(store, other):
    made = page(store, tuned(0.7, **other), tuned(0.8, ancestor()))
    assert [row[-1] for row in cells(made)] == ["–"] * len(cells(made))


def test_other_parents_and_architectures_without_pre_training_are_left_out(store):
    vectors = ancestor(None, "vectors")
    others = record(score=0.9), tuned(0.6, vectors, architecture="dan"), tuned(0.65, vectors | {"key": "c" * 16})
    assert [row[:2] for row in cells(page(store, *others, tuned(0.8, ancestor())))] == [["RoBERTa", "masked pieces"]]


def test_without_pre_training_there_is_no_page(store):
    assert page(store, tuned(0.7), record(score=0.8), tuned(0.9, ancestor(), protocol="smoke")) == []


def test_points_of_an_objective_are_joined_in_the_order_of_their_cost(store):
    dear, cheap = ancestor(key="d" * 16, flops=9e9), ancestor(key="e" * 16, flops=1e9)
    (plot,) = page(store, tuned(0.9, dear), tuned(0.8, cheap), tuned(0.7))[0].parts["plots"]
    assert [(line["name"], line["x"], line["y"]) for line in plot.data] == [
        ("RoBERTa, random weights", [1e9], [70.0]),
        ("RoBERTa, masked pieces", [2e9, 1e10], [80.0, 90.0]),
    ]


def test_deviations_are_on_the_scale_of_the_scores():
    """Perplexity is the exponential of what a record holds: of one seed the bar has no length."""
    info = display_info("nats_per_token")
    line = line_with_deviations("x", [(1, summarise([2.0])), (2, summarise([1.9, 2.1]))], info, 0)
    low, high = (math.exp(2 + sign * math.sqrt(0.02)) for sign in (-1, 1))
    assert line["error_y"]["array"] == [0.0, round((high - low) / 2, 2)]


def test_texts_of_records_are_no_markup(store):
    made = page(store, tuned(0.8, ancestor("<img src=x>")))
    assert "<img" not in html_of(made[0]) and "<img" not in json.dumps(made[0].parts["plots"][0].data)
