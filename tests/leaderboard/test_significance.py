"""Intervals and tests: by what the leaderboard tells one row from another."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
import scipy.stats

from harness.leaderboard.significance import (
    LUCK,
    SMALLEST_P,
    UNSTEADY,
    against_the_best,
    estimate,
    holm,
    pairs_told_apart,
    spread,
)


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


def one_seed(outcomes: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows of a single seed, each with its outcomes (units,) over 1."""
    return [(row[None], np.ones_like(row[None])) for row in outcomes]


def seeds_and_units(
    rows: int, seeds: int, units: int, seed: int = 0, between: float = 0.05
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Outcomes of rows whose seeds and units all differ."""
    draw = np.random.default_rng(seed)
    shape = (rows, seeds, units)
    values = 0.7 + between * draw.normal(size=(rows, seeds, 1)) + 0.2 * draw.normal(size=shape)
    values += 0.2 * draw.normal(size=(rows, 1, units)) + 0.2 * draw.normal(size=units)
    return [(row, np.ones((seeds, units))) for row in values]


# --- errors of scores, against scipy, statsmodels and enumeration ---


def test_with_one_seed_the_test_is_the_paired_t_test():
    """Nothing is known of seeds: the units alone speak, with as many degrees of freedom as they
    have."""
    outcomes = np.random.default_rng(0).normal(size=(3, 40)) + np.arange(3)[:, None] / 3
    found = estimate(one_seed(outcomes)).p_values()
    for a, b in itertools.combinations(range(3), 2):
        assert found[a, b] == pytest.approx(scipy.stats.ttest_rel(outcomes[a], outcomes[b]).pvalue)
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_array_equal(np.diag(found), 1.0)


def test_the_interval_of_a_difference_is_that_of_the_paired_t_test():
    """It leaves out 0 exactly where the p is below 0.05; from `archbench.compare`."""
    outcomes = np.random.default_rng(0).normal(size=(3, 40)) + np.arange(3)[:, None] / 3
    found = estimate(one_seed(outcomes))
    for a, b in itertools.combinations(range(3), 2):
        low, high = scipy.stats.ttest_rel(outcomes[a], outcomes[b]).confidence_interval(0.9)
        assert found.margins(0.9)[a, b] == pytest.approx((high - low) / 2)
        assert found.scores[a] - found.scores[b] == pytest.approx((high + low) / 2)


def test_clusters_of_equal_size_are_tested_by_their_means():
    """Ten questions of one story are one observation, not ten."""
    outcomes = np.random.default_rng(0).normal(size=(2, 12, 10)) + np.random.default_rng(1).normal(size=(2, 12, 1))
    clusters = np.repeat(np.arange(12), 10)
    found = estimate(one_seed(outcomes.reshape(2, 120)), clusters)
    means = outcomes.mean(2)
    assert found.p_values()[0, 1] == pytest.approx(scipy.stats.ttest_rel(*means).pvalue)
    own = scipy.stats.t.interval(0.95, 11, means[0].mean(), scipy.stats.sem(means[0]))
    assert found.intervals()[0] == pytest.approx(own)
    shuffled = np.random.default_rng(2).permutation(120)
    moved = estimate(one_seed(outcomes.reshape(2, 120)[:, shuffled]), clusters[shuffled])
    assert moved.p_values()[0, 1] == pytest.approx(found.p_values()[0, 1])


def test_where_only_seeds_differ_the_test_is_students():
    """Outcomes that are the same at every unit: three scores against three, 4 degrees of
    freedom."""
    scores = np.array([[0.70, 0.72, 0.75], [0.66, 0.69, 0.70]])
    rows = [(np.repeat(row[:, None], 50, 1), np.ones((3, 50))) for row in scores]
    found = estimate(rows)
    assert found.p_values()[0, 1] == pytest.approx(scipy.stats.ttest_ind(*scores).pvalue)
    alone = estimate(rows[:1]).intervals(0.9)[0]
    bounds = scipy.stats.t.interval(0.9, 2, scores[0].mean(), scipy.stats.sem(scores[0]))
    assert alone == pytest.approx(np.clip(bounds, 0.70, 0.75)), "no further than any unit scores"


def test_the_variance_of_a_score_is_that_of_a_crossed_analysis_of_variance():
    """Seeds and clusters, both drawn: (MS seeds + MS clusters - MS rest) / n."""
    pandas = pytest.importorskip("pandas")
    models = pytest.importorskip("statsmodels.formula.api")
    tables = pytest.importorskip("statsmodels.stats.anova")
    [(values, ones)] = seeds_and_units(1, 4, 15)
    frame = pandas.DataFrame(
        {"y": values.ravel(), "seed": np.repeat(np.arange(4), 15), "unit": np.tile(np.arange(15), 4)}
    )
    squares = tables.anova_lm(models.ols("y ~ C(seed) + C(unit)", frame).fit())["mean_sq"]
    variance = (squares["C(seed)"] + squares["C(unit)"] - squares["Residual"]) / values.size
    found = estimate([(values, ones)])
    assert found.of_seeds[0] > LUCK * found.of_chance[0], "the case is not one of too little variance"
    assert (found.of_seeds + found.of_clusters[0] - found.of_chance)[0] == pytest.approx(variance)
    low, high = found.intervals()[0]
    assert (low + high) / 2 == pytest.approx(values.mean())


def test_each_seed_of_an_f1_counts_alike():
    """A tagger of which one seed finds nothing was shown with the mean of its seeds, 63, and tested
    with 75: that seed says little, so that it weighed little in a ratio of sums."""
    found, said = np.array([[900.0], [905.0], [0.0]]), np.array([[1000.0], [1000.0], [0.0]])
    numerators, denominators = 2 * found, said + 1000
    row = spread(numerators, denominators, np.zeros(1, int))
    scores = (numerators / denominators).ravel()
    assert row.score == pytest.approx(scores.mean())
    assert row.between == pytest.approx(scores.var(ddof=1))


def test_the_deviation_of_a_row_is_drawn_towards_that_of_the_board():
    """Three rows worked by hand: variances of 1, 4 and 10 (times 1e-4), 2 degrees of freedom each,
    and 8 of the board's mean, 5: (8 x 5 + 2 x 1) / 10 = 4.2 and so on."""
    spread_of_three = np.array([-1.0, 0.0, 1.0])
    rows = [
        (np.repeat(0.5 + 0.01 * np.sqrt(v) * spread_of_three[:, None], 20, 1), np.ones((3, 20))) for v in (1, 4, 10)
    ]
    found = estimate(rows)
    assert found.of_seeds * 3 * 1e4 == pytest.approx([4.2, 4.8, 6.0])
    assert estimate(rows, weight=0.0).of_seeds * 3 * 1e4 == pytest.approx([1.0, 4.0, 10.0])


def test_one_row_that_failed_to_learn_does_not_make_the_others_unsteady():
    """A variance of 1,000 beside two of 1 and 4: it counts as five times the typical one, the
    median over ln 2."""
    spread_of_three = np.array([-1.0, 0.0, 1.0])
    rows = [
        (np.repeat(0.5 + 0.01 * np.sqrt(v) * spread_of_three[:, None], 20, 1), np.ones((3, 20))) for v in (1, 4, 1000)
    ]
    board = (1 + 4 + UNSTEADY * 4 / np.log(2)) / 3
    assert estimate(rows).of_seeds * 3e4 == pytest.approx([(8 * board + 2 * v) / 10 for v in (1, 4, 1000)])


def test_a_method_without_random_numbers_has_no_error_of_seeds():
    """Naive Bayes is the same with every seed, and says nothing of how far others' seeds differ."""
    same = right_and_wrong([0.7], 60)
    rows = [(np.repeat(same, 3, 0), np.ones((3, 60))), *seeds_and_units(2, 3, 60)]
    found = estimate(rows)
    assert found.of_seeds[0] == 0 and (found.of_seeds[1:] > 0).all()
    assert found.of_seeds[1:] == pytest.approx(estimate(rows[1:]).of_seeds)
    assert found.all_df == 4


def test_a_row_of_one_seed_has_the_deviation_of_the_board():
    """It is as unsteady as the rest, with one seed to show for it."""
    rows = seeds_and_units(3, 3, 60)
    lone = (rows[0][0][:1], rows[0][1][:1])
    found = estimate([lone, *rows[1:]])
    others = [spread(*row, np.arange(60)).between for row in rows[1:]]
    assert found.of_seeds[0] == pytest.approx(np.mean(others))
    assert (estimate([lone, lone]).of_seeds == 0).all()


def test_rows_of_another_budget_say_nothing_of_how_steady_the_board_is():
    """Trained on little, or by lot, seeds differ more; such a row is itself judged by its own."""
    rows = seeds_and_units(4, 3, 60)
    found = estimate(rows, together=[0, 1, 2])
    assert found.of_seeds[:3] == pytest.approx(estimate(rows[:3]).of_seeds)
    assert found.all_df == 6
    assert found.of_seeds[3] != pytest.approx(estimate(rows).of_seeds[3])
    one_seed_each = [(above[:1], below[:1]) for above, below in rows[:3]]
    assert (estimate([*one_seed_each, rows[3]], together=[0, 1, 2]).of_seeds > 0).all()


def test_the_variance_of_seeds_is_never_less_than_luck_with_the_units_makes():
    """Three seeds that happen to score the same are no steady system: each is right on other
    units."""
    right = np.zeros((3, 30))
    for seed in range(3):
        right[seed, 8 * seed : 8 * seed + 8] = 1
    found = estimate([(right, np.ones((3, 30)))])
    assert right.mean(1).tolist() == pytest.approx([8 / 30] * 3)
    assert found.of_seeds[0] == pytest.approx(LUCK * found.of_chance[0])
    rest = right - right.mean(0) - right.mean(1, keepdims=True) + right.mean()
    assert found.of_chance[0] == pytest.approx((rest**2).sum() / (2 * 29) / 30 / 3)


def test_more_seeds_and_more_clusters_make_an_interval_shorter():
    def width(seeds: int, units: int) -> float:
        low, high = estimate(seeds_and_units(1, seeds, units)).intervals()[0]
        return high - low

    assert width(12, 400) < width(3, 400) < width(3, 20)


def test_intervals_of_a_ratio_are_those_of_an_independent_bootstrap():
    """scipy's percentile bootstrap of a ratio of sums, such as an F1: the ends agree within a few
    hundredths of the interval's width."""
    numerators, denominators = spans_found(2, 400)
    found = estimate([(n[None], d[None]) for n, d in zip(numerators, denominators, strict=True)]).intervals()
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


def test_intervals_hold_the_true_score_as_often_as_they_say():
    """Three seeds and 50 clusters of four units, each with an error of its own; an interval over
    units alone would hold in half of the cases."""
    draw, held = np.random.default_rng(3), 0
    clusters = np.repeat(np.arange(50), 4)
    for _ in range(400):
        values = 0.5 + 0.04 * draw.normal(size=(8, 3, 1)) + 0.2 * draw.normal(size=(8, 1, 50))[:, :, clusters]
        values += 0.1 * draw.normal(size=values.shape)
        low, high = estimate([(row, np.ones((3, 200))) for row in values], clusters).intervals().T
        held += np.mean((low <= 0.5) & (high >= 0.5))
    assert 0.93 < held / 400 < 0.97


def test_an_interval_goes_no_further_than_the_scores_of_units():
    """-3 % accuracy, or 104 %."""
    nearly = np.ones((2, 40))
    nearly[0, 0] = nearly[1, 1:] = 0
    (low, high), (lowest, _) = estimate(one_seed(nearly)).intervals()
    assert 0.9 < low < 0.975 and (high, lowest) == (1.0, 0.0)
    assert estimate(one_seed(np.ones((1, 50)))).intervals().tolist() == [[1.0, 1.0]]


@pytest.mark.parametrize("seed", range(5))
def test_p_is_near_that_of_all_exchanges_of_a_tiny_test_set(seed):
    """Thirteen units, so that all 8,192 ways to exchange two systems' outcomes can be listed; sums
    below the line differ between systems."""
    draw = np.random.default_rng(seed)
    below = draw.integers(1, 5, (3, 13)).astype(float)
    above = below * (draw.random((3, 13)) + np.array([[0.0], [0.3], [0.0]]))
    found = estimate([(n[None], d[None]) for n, d in zip(above, below, strict=True)]).p_values()
    exchanges = np.array(list(itertools.product([False, True], repeat=13)))
    for a, b in itertools.combinations(range(3), 2):
        (first, second) = (
            np.where(exchanges, above[i], above[j]).sum(1) / np.where(exchanges, below[i], below[j]).sum(1)
            for i, j in ((b, a), (a, b))
        )
        as_far = np.abs(first - second) >= np.abs(first - second)[0] - 1e-12  # the first exchanges nothing
        assert found[a, b] == pytest.approx(as_far.mean(), abs=0.04)


def test_p_of_right_and_wrong_is_near_the_sign_test():
    """Exchanging outcomes of 1 and 0 is McNemar's exact test: a binomial over the units on which
    two systems differ."""
    outcomes = right_and_wrong([0.70, 0.72, 0.80], 500)
    found = estimate(one_seed(outcomes)).p_values()
    for a, b in itertools.combinations(range(3), 2):
        only_a, only_b = int((outcomes[a] > outcomes[b]).sum()), int((outcomes[b] > outcomes[a]).sum())
        assert found[a, b] == pytest.approx(scipy.stats.binomtest(only_a, only_a + only_b).pvalue, abs=0.04)


def test_p_is_never_less_than_all_differing_units_could_say():
    """Four units that all point one way have probability 1/8 by the sign test, whatever their t;
    and no p is zero."""
    outcomes = np.array([[1.0, 1, 1, 1, 1, 1], [0.0, 0, 0, 0, 1, 1]])
    assert estimate(one_seed(outcomes)).p_values()[0, 1] == 1 / 8
    outcomes = np.vstack([np.ones(200), np.ones(200), np.zeros(200)])
    found = estimate(one_seed(outcomes)).p_values()
    assert (found[0, 1], found[0, 2]) == (1.0, SMALLEST_P)


def test_the_order_of_rows_changes_nothing_and_a_second_look_neither():
    """With random draws, the group of SST-2 that shares the first place hung on their seed."""
    rows = seeds_and_units(6, 3, 80)
    order = [3, 1, 5, 0, 2, 4]
    here, there = estimate(rows), estimate([rows[i] for i in order])
    np.testing.assert_allclose(here.p_values()[np.ix_(order, order)], there.p_values(), rtol=1e-9)
    np.testing.assert_array_equal(here.p_values(), estimate(rows).p_values())


def test_units_of_a_single_cluster_are_taken_one_by_one():
    """Of other articles, questions on one article say nothing; their own spread is all there is."""
    rows = seeds_and_units(2, 3, 40)
    all_in_one = estimate(rows, np.zeros(40, dtype=int))
    np.testing.assert_array_equal(all_in_one.p_values(), estimate(rows).p_values())


def test_a_hundred_rows_on_ten_thousand_units_take_a_second():
    """A page is built for every task."""
    draw = np.random.default_rng(0)
    ones = np.ones((3, 10_000))
    rows = [((draw.random((3, 10_000)) < 0.8).astype(float), ones) for _ in range(100)]
    start = time.process_time()
    found = estimate(rows)
    against_the_best(found.p_values())
    found.intervals()
    assert time.process_time() - start < 2


# --- verdicts ---


def test_holm_matches_statsmodels_and_a_hand_worked_case():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    p = np.random.default_rng(0).random(20) ** 3
    assert holm(p.tolist()) == pytest.approx(multitest.multipletests(p, method="holm")[1])
    assert holm([]) == []


def test_the_best_against_the_rest_counts_every_pair_that_is_left():
    """Three rows, p of .30 and .02 against the best: first three pairs, 3 x .02, then the one that
    is left. By Holm's count the row would be behind at 2 x .02."""
    p = np.array([[1.0, 0.30, 0.02], [0.30, 1.0, 0.2], [0.02, 0.2, 1.0]])
    assert against_the_best(p) == pytest.approx([1.0, 0.30, 0.06])
    p[0, 1:] = 0.30, 0.01
    assert against_the_best(p) == pytest.approx([1.0, 0.30, 0.03])
    assert against_the_best(np.ones((1, 1))) == [1.0]
    assert against_the_best(np.ones((0, 0))) == []


def test_a_lead_over_all_the_others_needs_no_correction():
    """It is false only if it is false of one of them: .04 and .03 are both small enough."""
    p = np.array([[1.0, 0.04, 0.03], [0.04, 1.0, 0.9], [0.03, 0.9, 1.0]])
    assert against_the_best(p) == pytest.approx([1.0, 0.04, 0.04])
    p[0, 1] = p[1, 0] = 0.06
    assert against_the_best(p) == pytest.approx([1.0, 0.06, 0.06])


@pytest.mark.parametrize("seed", range(20))
def test_the_steps_are_those_of_the_rule_written_out(seed):
    """At any level: reject the smallest p while p times the pairs of the rows left is within it;
    or all at once, if every p is."""
    others = np.random.default_rng(seed).random(6) ** 4
    p = np.ones((7, 7))
    p[0, 1:] = p[1:, 0] = others
    found = against_the_best(p)[1:]
    for level in (0.001, 0.01, 0.05, 0.2, 0.7):
        behind = set(range(6)) if max(others) <= level else set()
        for rank, i in enumerate(np.argsort(others)):
            left = 7 - rank
            if others[i] * left * (left - 1) / 2 > level:
                break
            behind.add(int(i))
        assert {i for i in range(6) if found[i] <= level} == behind


def test_pairs_told_apart_are_counted_after_holm():
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    draw = np.random.default_rng(1).random((8, 8)) ** 6
    p = np.triu(draw, 1) + np.triu(draw, 1).T + np.eye(8)
    rejected = multitest.multipletests(p[np.triu_indices(8, 1)], method="holm")[0]
    assert 0 < rejected.sum() < 28
    assert pairs_told_apart(p) == rejected.sum()
    assert pairs_told_apart(np.ones((1, 1))) == pairs_told_apart(np.ones((0, 0))) == 0
