"""Answers as texts, against examples worked out by hand."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from harness import registry
from harness.problems.answers import answers_of

WORDS = ["Ann", "saw", "New", "York"]
TAGS = ["S-PER", "O", "B-LOC", "E-LOC"]
CANDIDATES = [
    {"id": "a", "group": "q", "first": "who ?", "second": "It rained .", "label": "0"},
    {"id": "b", "group": "q", "first": "who ?", "second": "Ann did .", "label": "1"},
    {"id": "c", "group": "q", "first": "who ?", "second": "Bob did .", "label": "1"},
]
LABELS = {"earn": 0.93, "acq": 0.61, "grain": 0.5, "ship": 0.02}


def worded(type):
    return answers_of(registry.entry("problems", type))


@pytest.mark.parametrize(
    ("type", "prediction", "row", "text", "cell"),
    [
        ("classify", "positive", None, "positive", "positive"),
        ("extract", "", None, "(nothing)", ""),
        ("tag", TAGS, {"text": WORDS}, "Ann/S-PER New/B-LOC York/E-LOC", "S-PER O B-LOC E-LOC"),
        ("tag", TAGS, None, "1/S-PER 3/B-LOC 4/E-LOC", "S-PER O B-LOC E-LOC"),
        ("tag", TAGS[:2], {"text": WORDS}, "1/S-PER", "S-PER O"),
        ("tag", ["O", "O"], None, "(nothing)", "O O"),
        ("regress", 2.3456789, None, "2.35", "2.345679"),
        ("regress", 999.7, None, "999.7", "999.7"),
        ("regress", 1998.4, None, "1998.4", "1998.4"),
        ("regress", 1234567.8, None, "1234567.8", "1234568"),
        ("multilabel", LABELS, None, "acq; earn", "acq; earn"),
        ("multilabel", {"ship": 0.02}, None, "(nothing)", ""),
        ("language_model", [-3.2, 8], None, "0.40 nats per token", "-3.2 8"),
        ("text", [0.0, 0], None, "(nothing)", "0 0"),
    ],
)
def test_a_prediction_reads_as_a_text(type, prediction, row, text, cell):
    assert worded(type).text(prediction, row) == text
    assert worded(type).cell(prediction) == cell


def test_a_ranking_is_told_by_its_first_candidate_and_the_places_of_the_right_ones():
    rank, scores = worded("rank"), {"a": 0.5, "b": 0.9, "c": -1.0}
    assert rank.of_unit("q", scores, CANDIDATES) == "right at 1, 3 of 3; first: Ann did ."
    assert rank.right_of_unit(CANDIDATES) == "Ann did . / Bob did ."
    assert rank.of_unit("q", scores, ()) is None, "without the rows, whose candidates they are is not known"
    assert rank.of_unit("q", {"a": 0.5}, CANDIDATES) is None, "a score is missing"
    assert rank.of_unit("a", scores, CANDIDATES[:1]) == "0.5", "without questions each candidate is a unit"


def test_the_answer_to_a_unit_is_worded_with_its_row_or_without_one():
    """Pages that have no corpus at hand show what was answered all the same."""
    tag = worded("tag")
    assert tag.of_unit("7", {"7": TAGS}, [{"text": WORDS}]) == "Ann/S-PER New/B-LOC York/E-LOC"
    assert tag.of_unit("7", {"7": TAGS}, ()) == "1/S-PER 3/B-LOC 4/E-LOC"
    assert tag.of_unit("8", {"7": TAGS}, ()) is None, "nobody answered"


def test_tags_alone_name_words_of_the_text():
    """A page that compares systems sets other answers apart from the text."""
    assert [type for type in registry.entries("problems") if worded(type).tagged] == ["tag"]


@pytest.mark.parametrize(
    ("type", "row", "right"),
    [
        ("classify", {"text": "fine", "label": "good"}, "good"),
        ("tag", {"text": WORDS, "tags": TAGS}, "Ann/S-PER New/B-LOC York/E-LOC"),
        ("extract", {"answers": {"text": ["Paris", "Paris", "in Paris"], "start": [3, 3, 0]}}, "Paris / in Paris"),
        ("extract", {"answers": {"text": [], "start": []}}, "(nothing)"),
        ("answer", {"facts": ["f"], "question": "q", "answer": "kitchen", "skill": "1"}, "kitchen"),
        ("transcribe", {"audio": {}, "transcript": "one two"}, "one two"),
        ("regress", {"text": "t", "score": 4}, "4"),
        ("multilabel", {"text": "t", "labels": ["earn", "acq"]}, "acq; earn"),
        ("multilabel", {"text": "t", "labels": []}, "(nothing)"),
        ("text", {"text": "t"}, None),
    ],
)
def test_the_right_answer_of_each_type_is_its_own(type, row, right):
    assert worded(type).right_of_unit([row]) == right


def test_the_least_sure_tag_says_how_sure_a_sentence_is():
    assert worded("tag").certainty([0.9, 0.4]) == 0.4
    assert worded("tag").certainty([]) is None and worded("classify").certainty(None) is None
    assert worded("classify").certainty(0.7) == 0.7


def test_a_shape_that_nobody_words_is_no_text_and_json_for_programs():
    """A plugin's problem that says nothing of its answers has pages all the same."""
    answers = worded("classify")
    assert answers.text([{"x": 1}]) is None and answers.cell([{"x": "\u00e9"}]) == '[{"x": "\u00e9"}]'


def test_a_plugin_words_its_answers_in_its_own_file(monkeypatch):
    """A name without a module is one of the problem's file."""
    entry = registry.entry("problems", "classify")
    module = sys.modules[registry.load(entry).__module__]

    class Shouted(type(worded("classify"))):
        """Answers in capitals."""

        def text(self, prediction, row=None):
            return prediction.upper()

    monkeypatch.setattr(module, "Shouted", Shouted, raising=False)
    assert answers_of(replace(entry, answers="Shouted")).text("good") == "GOOD"
