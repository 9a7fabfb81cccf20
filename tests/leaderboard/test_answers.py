"""Answers as texts, and right answers, against examples worked out by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from harness import registry
from harness.leaderboard.answers import answer_text, gold_by_answers, right_answer, unit_answer
from harness.records.outcomes import Outcomes

WORDS = ["Ann", "saw", "New", "York"]
TAGS = ["S-PER", "O", "B-LOC", "E-LOC"]
CANDIDATES = [
    {"id": "a", "group": "q", "first": "who ?", "second": "It rained .", "label": "0"},
    {"id": "b", "group": "q", "first": "who ?", "second": "Ann did .", "label": "1"},
    {"id": "c", "group": "q", "first": "who ?", "second": "Bob did .", "label": "1"},
]


@pytest.mark.parametrize(
    ("answer", "words", "text"),
    [
        ("positive", None, "positive"),
        ("", None, "(nothing)"),
        (TAGS, WORDS, "Ann/S-PER New/B-LOC York/E-LOC"),
        (TAGS, None, "1/S-PER 3/B-LOC 4/E-LOC"),
        (["O", "O"], None, "(nothing)"),
        (2.34567, None, "2.35"),
        ({"text": ["Paris", "Paris", "in Paris"], "start": [3, 3, 0]}, None, "Paris / in Paris"),
        ({"text": [], "start": []}, None, "(nothing)"),
        ([-3.2, 7], None, None),
    ],
)
def test_answers_read_as_texts(answer, words, text):
    assert answer_text(answer, words) == text


def test_a_ranking_is_told_by_its_first_candidate_and_the_places_of_the_right_ones():
    rank = registry.entry("problems", "rank")
    scores = {"a": 0.5, "b": 0.9, "c": -1.0}
    assert unit_answer("q", scores, CANDIDATES, rank) == "right at 1, 3 of 3; first: Ann did ."
    assert right_answer("q", CANDIDATES, rank) == "Ann did . / Bob did ."
    assert unit_answer("q", scores, (), rank) is None, "without the rows, whose candidates they are is not known"
    assert unit_answer("q", {"a": 0.5}, CANDIDATES, rank) is None, "a score is missing"


@pytest.mark.parametrize(
    ("type", "row", "right"),
    [
        ("classify", {"text": "fine", "label": "good"}, "good"),
        ("tag", {"text": WORDS, "tags": TAGS}, "Ann/S-PER New/B-LOC York/E-LOC"),
        ("extract", {"passage": "p", "question": "q", "answers": {"text": ["x"], "start": [0]}}, "x"),
        ("answer", {"facts": ["f"], "question": "q", "answer": "kitchen", "skill": "1"}, "kitchen"),
        ("transcribe", {"audio": {}, "transcript": "one two"}, "one two"),
        ("regress", {"text": "t", "score": 4}, "4"),
    ],
)
def test_the_right_answer_of_each_type_is_its_own(type, row, right):
    assert right_answer("u", [row | {"id": "u"}], registry.entry("problems", type)) == right


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
