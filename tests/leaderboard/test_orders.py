"""Rank correlations between budgets: whether a small one orders the architectures as a large one
does."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import spearmanr

from harness.leaderboard.board import read
from harness.leaderboard.orders import agreements, interval, rank_correlation
from harness.leaderboard.tables.budgets import order_table
from harness.records import Store
from tests.support.made_records import record

IDS = ("dan", "bilstm", "lstm", "gru", "cnn", "rcnn")
SMALL = {"name": "small", "examples": 500, "passes": 10, "min_steps": 100, "batch_size": 32}
FULL = SMALL | {"name": "full", "examples": None}


def write(store: Store, scores: dict[str, float], **fields) -> None:
    for architecture, score in scores.items():
        store.write(record(architecture, score=score, **fields))


def found(store: Store):
    return agreements(read(store.folder), "sst2")


def descending(ids) -> dict[str, float]:
    return {id: 0.9 - 0.05 * i for i, id in enumerate(ids)}


def small(**fields) -> dict:
    """Fields of a record of a budget, whose hyperparameters tell its cell from others."""
    budget = fields.pop("budget", SMALL)
    return {"budget": budget, "hyperparameters": {"limits": {"budget": budget["name"], "max_train": None}}} | fields


def test_the_same_order_is_one_and_the_opposite_minus_one(store):
    write(store, descending(IDS), **small())
    write(store, descending(IDS), **small(budget=FULL))
    write(store, descending(IDS[::-1]), **small(tier="mini"))
    by_amount = {frozenset((a.first.tier, a.second.tier)): a for a in found(store)}
    assert by_amount[frozenset({"local"})].correlation == 1
    assert by_amount[frozenset({"local", "mini"})].correlation == -1
    assert all(a.shared == 6 and a.interval is None for a in by_amount.values())


def test_of_error_rates_the_lowest_is_the_first(store):
    """A rank correlation of a rate and a rate is that of the scores; mixing directions is not."""
    rates = {id: {"wer": 0.1 * i} for i, id in enumerate(IDS)}
    for budget in (SMALL, FULL):
        for architecture, rate in rates.items():
            store.write(record(architecture, "an4", rate, **small(budget=budget)))
    assert [a.correlation for a in agreements(read(store.folder), "an4")] == [1]


@pytest.mark.parametrize(
    "other",
    [{"protocol": "paper"}, {"protocol_version": 2}, {"sees": ["test texts"]}, {"task_version": 2}],
    ids=lambda other: next(iter(other)),
)
def test_rows_of_other_rules_are_not_set_beside_these(store, other):
    write(store, descending(IDS), **small())
    write(store, descending(IDS), **small(budget=FULL) | other)
    assert found(store) == []


def test_budgets_of_ones_own_and_smoke_have_no_order(store):
    write(store, descending(IDS), **small())
    write(store, descending(IDS), **small(budget=SMALL | {"name": "custom"}))
    write(store, descending(IDS), **small(protocol="smoke"))
    assert found(store) == []


def test_four_architectures_in_common_are_too_few(store):
    write(store, descending(IDS), **small())
    write(store, descending(IDS[:4]), **small(budget=FULL))
    assert found(store) == [] and order_table(read(store.folder), "sst2") is None


def test_an_architecture_with_two_configurations_is_left_out(store):
    write(store, descending(IDS), **small())
    write(store, descending(IDS), **small(budget=FULL))
    store.write(record("dan", score=0.1, budget=FULL, hyperparameters={"hidden": 7, "limits": {"budget": "full"}}))
    assert [a.shared for a in found(store)] == [5]


def test_the_table_says_which_amounts_and_how_sure(store):
    write(store, descending(IDS), **small())
    write(store, descending([IDS[1], IDS[0], *IDS[2:]]), **small(budget=FULL))
    [row] = order_table(read(store.folder), "sst2").blocks[0].rows
    texts = [cell[0].text for cell in row.cells]
    assert sorted([row.name, texts[0]]) == [
        "local, full (all examples, 10 passes, at least 100 steps, batches of 32)",
        "local, small (500 examples, 10 passes, at least 100 steps, batches of 32)",
    ]
    low, high = interval(1 - 6 * 2 / (6 * 35), 6)
    assert texts[1:] == ["equal", "6", "0.94", f"{low:.2f} to {high:.2f}"]


def test_ties_share_their_mean_rank():
    first, second = [1.0, 2.0, 2.0, 4.0], [1.0, 3.0, 2.0, 4.0]
    ranks = np.corrcoef([1, 2.5, 2.5, 4], [1, 3, 2, 4])[0, 1]
    assert rank_correlation(first, second) == pytest.approx(ranks)
    assert rank_correlation([1.0, 1.0], [1.0, 2.0]) == 0


def test_the_interval_holds_the_true_correlation_about_as_often_as_it_says():
    """Of normal pairs with Pearson's r .7 the true rank correlation is 6 / pi * arcsin(r / 2)."""
    draw, true = np.random.default_rng(0), 6 / math.pi * math.asin(0.35)
    covariance = [[1, 0.7], [0.7, 1]]
    held = 0
    for _ in range(400):
        pairs = draw.multivariate_normal([0, 0], covariance, size=12)
        bounds = interval(float(spearmanr(*pairs.T).statistic), 12)
        held += bounds is not None and bounds[0] <= true <= bounds[1]
    assert 0.92 <= held / 400 <= 0.985
    assert interval(0.5, 3) is None
