"""Shards, order and estimates: a grid on several machines is the grid, and the longest cell does
not come last."""

from __future__ import annotations

from typing import Any

import pytest

from harness.errors import UsageError
from harness.records import Record
from harness.running.order import Estimate, in_shard, parse_shard
from tests.support.made_records import record


def took(seconds: float, architecture: str = "dan", **fields):
    return record(architecture, seconds={"total": seconds}, **fields)


def cells(count: int):
    return [record(seed=seed).cell for seed in range(count)]


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_shards_are_disjoint_and_complete(n):
    """A cell in no shard is never run; one in two is paid for twice."""
    for cell in cells(200):
        assert sum(in_shard(cell, (i, n)) for i in range(n)) == 1


def test_shards_are_of_similar_size_and_do_not_depend_on_other_cells():
    """A machine that starts later, when some cells are finished, must still take its own part."""
    many = cells(400)
    sizes = [sum(in_shard(cell, (i, 4)) for cell in many) for i in range(4)]
    assert min(sizes) > 70
    assert [in_shard(cell, (1, 4)) for cell in many[::2]] == [in_shard(cell, (1, 4)) for cell in many][::2]


@pytest.mark.parametrize("text", ["4/4", "0/0", "1", "-1/4", "a/b", "1/4/2", ""])
def test_a_shard_that_is_none_is_refused_with_what_is_right(text):
    with pytest.raises(UsageError, match=r"--shard .*expected i/n with i from 0 to n - 1"):
        parse_shard(text)
    assert parse_shard("3/4") == (3, 4)


def test_a_cell_takes_what_the_closest_earlier_ones_took():
    """Other seeds first; then the architecture on the task; then the median of the task; then of
    everything."""
    estimate = Estimate(
        [
            took(10.0),
            took(20.0, seed=1),
            took(1000.0, seed=2, hyperparameters={"limits": {"max_train": 5}}),
            took(70.0, "cnn"),
            took(5.0, "cnn", task="fsdd"),
            took(9999.0, "rnn", status="failed"),
        ]
    )
    assert estimate(record(seed=7).cell) == 15.0
    assert estimate(record(tier="hub").cell) == pytest.approx((10 + 20 + 1000) / 3)
    assert estimate(record("new").cell) == 45.0, "median of 10, 20, 70, 1000"
    assert estimate(record("new", task="snli").cell) == 20.0, "median of all five"
    assert Estimate([])(record().cell) is None


def test_other_settings_take_time_in_proportion_to_what_is_read():
    """A grid of whole training sets is planned from records of small budgets."""

    def of(examples: int, passes: int, **more: Any) -> Record:
        settings = {"limits": {"max_train": examples}, "training": {"epochs": passes}}
        return took(50.0, hyperparameters=settings, counts={"train": examples}, **more)

    estimate = Estimate([of(100, 5)])
    assert estimate(of(1000, 5, seed=3).cell) == 500.0
    assert estimate(of(1000, 1, seed=3).cell) == 100.0
    assert estimate(of(100, 5, seed=3).cell) == 50.0


def test_times_of_a_slower_machine_are_shortened():
    slow, fast = ({"version": 1, "examples_per_second": rate, "measured": ""} for rate in (100.0, 150.0))
    records = [took(30.0, ruler=slow)]
    assert Estimate(records, fast)(record(seed=1).cell) == pytest.approx(20.0)
    assert Estimate(records, slow)(record(seed=1).cell) == Estimate(records)(record(seed=1).cell) == 30.0


def test_the_longest_comes_first_and_what_is_unknown_keeps_its_order():
    estimate = Estimate([took(10.0, "a"), took(30.0, "b"), took(20.0, "c")])
    assert [cell.architecture for cell in estimate.longest_first([record(name).cell for name in "abc"])] == [
        "b",
        "c",
        "a",
    ]
    unknown = [record(name).cell for name in "xyz"]
    assert Estimate([]).longest_first(unknown) == unknown


def test_the_total_is_at_least_the_longest_cell():
    estimate = Estimate([took(10.0, "a"), took(100.0, "b")])
    chosen = [record("a", seed=1).cell, record("b", seed=1).cell]
    assert estimate.total(chosen, workers=1) == 110.0
    assert estimate.total(chosen, workers=2) == 100.0
    assert Estimate([]).total(chosen, workers=2) is None
