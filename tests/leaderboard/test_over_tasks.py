"""Means and ranks over tasks: no gap may count as a zero, and no rank as a lead."""

from __future__ import annotations

import pytest
import scipy.stats

from harness.errors import LeaderboardError
from harness.leaderboard.over_tasks import complete_block, critical_difference, normalised_means


def test_means_over_tasks_are_of_the_share_between_floor_and_best():
    """SST-2 from .5, WER from 1 downwards, worked by hand: a is the best of both, b is half-way on
    SST-2 and at the floor of AN4, c below the one floor."""
    scores = {
        "a": {"sst2": 0.9, "an4": 0.2},
        "b": {"sst2": 0.7, "an4": 1.0},
        "c": {"sst2": 0.4, "an4": 0.6},
    }
    means = normalised_means(scores, {"sst2": 0.5, "an4": 1.0}, lower_is_better={"an4"})
    assert means == pytest.approx({"a": 1.0, "b": 0.25, "c": 0.125})


@pytest.mark.parametrize(
    ("scores", "floors", "message"),
    [
        ({"a": {"x": 0.9}, "b": {"x": 0.8}}, {}, "no floor is known of x"),
        ({"a": {"x": 0.3}, "b": {"x": 0.2}}, {"x": 0.5}, "nobody is above the floor of x"),
    ],
)
def test_what_cannot_be_normalised_is_refused(scores, floors, message):
    """A division by nothing would rank them by rounding errors."""
    with pytest.raises(LeaderboardError, match=message):
        normalised_means(scores, floors)


def gappy() -> dict[str, dict[str, float]]:
    """Four systems on six tasks: d lacks one; z was tried on a seventh by a alone."""
    scores = {
        system: {f"t{i}": value + i / 1000 for i in range(6)}
        for system, value in zip("abcd", (0.9, 0.8, 0.7, 0.6), strict=True)
    }
    del scores["d"]["t3"]
    scores["a"]["t6"] = 0.5
    return scores


def test_ranks_are_taken_over_the_largest_block_without_a_gap():
    """A rank over tasks that only some have run compares different things."""
    assert complete_block(gappy(), 5, 3) == (["a", "b", "c", "d"], ["t5", "t4", "t2", "t1", "t0"])
    assert complete_block(gappy(), 6, 3)[0] == ["a", "b", "c"]
    assert complete_block(gappy(), 8, 3) == ([], [])
    assert complete_block({}, 1, 1) == ([], [])


def test_critical_difference_matches_a_hand_worked_case():
    """Five tasks, four systems always in one order: ranks 1 to 4; Nemenyi's distance is q sqrt(k (k
    + 1) / 6 N), q = 2.569 for k = 4."""
    pytest.importorskip("autorank")
    ranks = critical_difference(gappy(), set())
    assert ranks.names == ["a", "b", "c", "d"]
    assert ranks.mean_ranks == [1.0, 2.0, 3.0, 4.0]
    assert ranks.cd == pytest.approx(2.569 * (4 * 5 / (6 * 5)) ** 0.5, abs=0.01)
    assert ranks.p == pytest.approx(scipy.stats.friedmanchisquare(*[[v] * 5 for v in (0.9, 0.8, 0.7, 0.6)]).pvalue)
    assert critical_difference(gappy(), {f"t{i}" for i in range(6)}).names == ["d", "c", "b", "a"], (
        "where less is better"
    )
    assert critical_difference({s: {"t0": 0.5} for s in "abc"}, set()) is None
