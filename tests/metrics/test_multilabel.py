"""Micro and macro F1 of sets of labels, and P@k with equal probabilities."""

from __future__ import annotations

import itertools
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.metrics import score
from harness.metrics.label_sets import precision_at
from harness.metrics.units import unit_scores

LABELS = "abcde"
PREDICTIONS = st.dictionaries(st.sampled_from(LABELS), st.sampled_from([0.2, 0.5, 0.6, 1.0]))
SETS = st.sets(st.sampled_from(LABELS))


@settings(max_examples=100, derandomize=True)
@given(st.integers(1, 5), PREDICTIONS, SETS)
def test_precision_is_the_mean_over_all_orders_of_equal_probabilities(k, prediction, labels):
    """Else the order in which a program lists labels would decide."""
    orders = [
        order
        for order in itertools.permutations(prediction)
        if all(prediction[a] >= prediction[b] for a, b in itertools.pairwise(order))
    ]
    expected = fmean(sum(label in labels for label in order[:k]) / k for order in orders)
    assert precision_at(k, prediction, labels) == pytest.approx(expected)


def test_f1_by_hand():
    """Decisions of all labels together: 2 right, 4 said, 3 true. Of each label: a 1, b 0, c 2/3."""
    rows = [{"labels": ["a", "c"]}, {"labels": []}, {"labels": ["a"]}]
    predictions = [{"a": 0.9, "c": 0.7, "b": 0.51}, {"c": 0.6, "a": 0.5}, {"a": 0.51, "c": 0.4}]
    assert score(["micro_f1", "macro_f1"], predictions, rows) == {
        "micro_f1": pytest.approx(2 * 3 / (5 + 3)),
        "macro_f1": pytest.approx((1 + 0 + 2 / 3) / 3),
    }


@settings(max_examples=50, derandomize=True)
@given(st.lists(st.tuples(PREDICTIONS, SETS), min_size=1, max_size=6))
@pytest.mark.parametrize("metric", ["micro_f1", "precision_at_1", "precision_at_3"])
def test_units_add_up_to_the_score(metric, pairs):
    """Intervals and paired tests are of the number that they stand beside."""
    predictions = [prediction for prediction, _ in pairs]
    rows = [{"id": str(n), "labels": sorted(labels)} for n, (_, labels) in enumerate(pairs)]
    units = unit_scores(metric, predictions, rows)
    if sum(units.denominators):
        assert sum(units.numerators) / sum(units.denominators) == pytest.approx(
            score([metric], predictions, rows)[metric]
        )


def test_nothing_to_say_and_nothing_said_is_no_score():
    with pytest.raises(ValueError, match="no example has a label, and none is predicted"):
        score(["micro_f1"], [{"a": 0.4}], [{"labels": []}])
