"""Means over seeds and ties: what every number of the leaderboard goes through."""

from __future__ import annotations

import itertools

import pytest

from harness.leaderboard.summary import Summary, leaders, summarise


def test_mean_and_sample_deviation_match_a_hand_worked_case():
    """Dividing by n instead of n - 1 would give .816 and make three seeds look steadier than they
    are."""
    summary = summarise([2.0, 3.0, 4.0])
    assert (summary.mean, summary.sd, summary.n) == (3.0, 1.0, 3)


def test_one_seed_has_no_deviation():
    """A single run shown as ± 0.0 would look perfectly reproducible."""
    assert summarise([0.83]) == Summary(0.83, None, 1)


def test_no_seeds_is_an_error_and_not_a_nan():
    with pytest.raises(ValueError, match="no values"):
        summarise([])


def test_the_order_of_seeds_changes_nothing():
    """Files come in any order from two merged machines; the page must not change in its last
    digit."""
    values = [0.1, 0.2, 0.3, 0.7, 1e-9]
    assert len({summarise(order) for order in itertools.permutations(values)}) == 1


def test_what_a_table_shows_as_equal_leads_together():
    """A reader who sees 83.2 twice with one in bold asks why."""
    assert leaders([0.8321, 0.8324, 0.8316], lower_is_better=False, digits=3) == {0, 1, 2}
    assert leaders([0.8321, 0.8334, 0.79], lower_is_better=False, digits=3) == {1}


def test_lower_is_better_for_error_rates():
    assert leaders([0.31, 0.12, 0.5], lower_is_better=True, digits=3) == {1}


def test_nobody_leads_an_empty_column():
    assert leaders([], lower_is_better=False, digits=3) == set()
