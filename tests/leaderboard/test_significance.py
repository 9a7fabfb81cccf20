"""Seeds, intervals, tests and ties: what every number of the leaderboard goes through."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.stats

from harness.leaderboard.significance import (
    Summary,
    complete_block,
    critical_difference,
    holm,
    intervals,
    leaders,
    paired_p,
    summarise,
    tie_group,
)


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


def right_and_wrong(rates: list[float], units: int, seed: int = 0) -> np.ndarray:
    """Outcomes 1 or 0 of systems that are right so often."""
    return (np.random.default_rng(seed).random((len(rates), units)) < np.array(rates)[:, None]).astype(float)


def spans_found(rows: int, units: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Sums under and over the line of an F1: some units have nothing to find."""
    generator = np.random.default_rng(seed)
    actual, predicted = generator.integers(0, 4, units), generator.integers(0, 4, (rows, units))
    return 2.0 * np.minimum(generator.integers(0, 4, (rows, units)), np.minimum(actual, predicted)), (
        actual + predicted
    ).astype(float)


def test_intervals_are_those_of_an_independent_bootstrap():
    """scipy's percentile bootstrap, with draws of its own: the ends agree within a few hundredths
    of the interval's width."""
    numerators, denominators = spans_found(2, 400)
    found = intervals(numerators, denominators)
    for row in range(2):
        theirs = scipy.stats.bootstrap(
            (numerators[row], denominators[row]),
            lambda n, d, axis: n.sum(axis) / d.sum(axis),
            paired=True,
            vectorized=True,
            n_resamples=5_000,
            method="percentile",
            rng=np.random.default_rng(5),
        ).confidence_interval
        width = theirs.high - theirs.low
        assert found[row] == pytest.approx([theirs.low, theirs.high], abs=0.08 * width)


def test_an_interval_holds_its_score_and_shrinks_with_more_units():
    few, many = right_and_wrong([0.8], 100), right_and_wrong([0.8], 10_000)
    (low, high), (closer_low, closer_high) = (
        intervals(few, np.ones_like(few))[0],
        intervals(many, np.ones_like(many))[0],
    )
    assert low < few.mean() < high
    assert closer_high - closer_low == pytest.approx((high - low) / 10, rel=0.3)


def test_a_system_that_is_always_right_has_no_interval_to_speak_of():
    assert intervals(np.ones((1, 50)), np.ones((1, 50))).tolist() == [[1.0, 1.0]]


def test_draws_in_blocks_are_draws_all_the_same(monkeypatch):
    """Test sets of 20,000 units are drawn in blocks: forgetting the last one would leave too few
    draws, or none."""
    numerators = right_and_wrong([0.6, 0.7], 300)
    whole = intervals(numerators, np.ones_like(numerators)), paired_p(numerators, np.ones_like(numerators))
    monkeypatch.setattr("harness.leaderboard.significance.BLOCK", 300 * 7)
    parts = intervals(numerators, np.ones_like(numerators)), paired_p(numerators, np.ones_like(numerators))
    np.testing.assert_allclose(whole[0], parts[0], atol=0.01)
    np.testing.assert_allclose(whole[1], parts[1], atol=0.04)


@pytest.mark.parametrize("seed", range(3))
def test_paired_p_counts_all_exchanges_of_a_tiny_test_set(seed):
    """Ten units, so that all 1,024 ways to exchange outcomes can be listed; sums below the line
    differ between systems."""
    numerators, denominators = spans_found(3, 10, seed)
    found = paired_p(numerators, denominators)

    def score(n, d):
        return n.sum() / d.sum() if d.sum() else 0.0

    for a, b in itertools.combinations(range(3), 2):
        seen = abs(score(numerators[a], denominators[a]) - score(numerators[b], denominators[b]))
        as_large = 0
        for exchanged in itertools.product([False, True], repeat=10):
            x = np.array(exchanged)
            first = score(np.where(x, numerators[b], numerators[a]), np.where(x, denominators[b], denominators[a]))
            second = score(np.where(x, numerators[a], numerators[b]), np.where(x, denominators[a], denominators[b]))
            as_large += abs(first - second) >= seen - 1e-12
        assert found[a, b] == pytest.approx(as_large / 2**10, abs=0.04)
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_array_equal(np.diag(found), 1.0)


def test_paired_p_of_right_and_wrong_is_the_sign_test():
    """Exchanging outcomes of 1 and 0 is McNemar's exact test: a binomial over the units on which
    two systems differ."""
    outcomes = right_and_wrong([0.70, 0.72, 0.80], 500)
    found = paired_p(outcomes, np.ones_like(outcomes))
    for a, b in itertools.combinations(range(3), 2):
        only_a, only_b = int((outcomes[a] > outcomes[b]).sum()), int((outcomes[b] > outcomes[a]).sum())
        assert found[a, b] == pytest.approx(scipy.stats.binomtest(only_a, only_a + only_b).pvalue, abs=0.04)


def test_a_system_and_its_copy_do_not_differ_and_p_is_never_zero():
    outcomes = np.vstack([right_and_wrong([0.9], 200), right_and_wrong([0.9], 200), right_and_wrong([0.1], 200)])
    found = paired_p(outcomes, np.ones_like(outcomes))
    assert found[0, 1] == 1.0
    assert found[0, 2] == pytest.approx(1 / 2_001)


def test_with_many_rows_the_smallest_p_still_passes_the_correction():
    """With a fixed number of permutations, no difference at all could be significant among hundreds
    of systems."""
    outcomes = np.vstack([right_and_wrong([0.9], 60), *[right_and_wrong([0.1], 60, seed) for seed in range(150)]])
    corrected = holm(paired_p(outcomes, np.ones_like(outcomes))[0, 1:].tolist())
    assert max(corrected) < 0.05


def test_holm_matches_statsmodels_and_a_hand_worked_case():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    p = np.random.default_rng(0).random(20) ** 3
    assert holm(p.tolist()) == pytest.approx(multitest.multipletests(p, method="holm")[1])
    assert holm([]) == []


def test_the_tie_group_holds_what_chance_may_have_parted():
    """Three rivals: .90 leads, .89 cannot be told from it, .50 can; .04 alone would be significant,
    but not as one of two."""
    p = np.array([[1.0, 0.30, 0.04], [0.30, 1.0, 0.2], [0.04, 0.2, 1.0]])
    assert tie_group([0.90, 0.89, 0.50], p, lower_is_better=False) == {0, 1, 2}
    p[0, 2] = p[2, 0] = 0.02
    assert tie_group([0.90, 0.89, 0.50], p, lower_is_better=False) == {0, 1}
    assert tie_group([0.90, 0.89, 0.50], p, lower_is_better=True) == {1, 2}
    assert tie_group([], np.ones((0, 0)), lower_is_better=False) == set()


def test_a_lone_system_leads():
    assert tie_group([0.3], np.ones((1, 1)), lower_is_better=False) == {0}


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
