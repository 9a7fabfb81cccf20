"""Right answers as far as results show them, against examples worked out by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from harness.leaderboard.answers import gold_by_answers
from harness.records.outcomes import Outcomes


def compared(metric, numerators, denominators=None, confusion=None):
    """A comparison of results with one seed each."""
    units = [f"u{i}" for i in range(len(numerators[0]))]
    ones = denominators or [1.0] * len(units)
    made = [[Outcomes(metric, units, np.array(row), np.array(ones), {}, confusion)] for row in numerators]
    return SimpleNamespace(metric=metric, units=units, outcomes=made)


def test_whoever_has_full_marks_says_what_is_right():
    three = compared("accuracy", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    assert gold_by_answers(three, [["a", "x", "x"], ["x", "b", "y"]]) == ["a", "b", None]
    assert gold_by_answers(three, [None, ["x", "b", "y"]]) == [None, "b", None]


def test_the_commonest_of_the_right_answers_is_shown():
    """A span is right for the metric even if its tags are not well formed, which few are."""
    found = compared("span_f1", [[2.0]] * 3, [2.0])
    assert gold_by_answers(found, [["1/B-PER"], ["1/S-PER"], ["1/S-PER"]]) == ["1/S-PER"]


def test_of_two_classes_the_other_one_is_right():
    classes = (["bad", "good"], [[1, 1], [1, 1]])
    assert gold_by_answers(compared("accuracy", [[1.0, 0.0]], confusion=classes), [["bad", "bad"]]) == ["bad", "good"]


def test_full_marks_are_no_error_where_less_is_better_and_unknown_where_a_score_has_no_best():
    assert gold_by_answers(compared("wer", [[0.0, 1.0]], [2.0, 2.0]), [["a b", "a c"]]) == ["a b", None]
    assert gold_by_answers(compared("nats_per_token", [[0.0, 1.0]]), [["a", "b"]]) == [None, None]


def test_a_sentence_without_names_has_nothing_to_tag():
    """Nothing was to be found and nothing was said: 0 of 0 is right, 0 of 2 is not."""
    assert gold_by_answers(compared("span_f1", [[0.0, 0.0]], [0.0, 2.0]), [["(nothing)", "1/S-PER"]]) == [
        "(nothing)",
        None,
    ]
