"""What is to be predicted, as numbers and back: a slip here trains every model of a task on wrong
answers."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import DataError
from harness.problems import problem
from harness.problems.answer import AnswerTarget
from harness.problems.base import IGNORED
from harness.problems.classify import ClassTarget
from harness.problems.extract import CopiedAnswer, SpanTarget
from harness.problems.rank import RankTarget
from harness.problems.symbols import SymbolTarget
from harness.problems.tag import TagTarget
from harness.ragged import Ragged
from harness.views.base import WORD
from harness.views.words import Words

PIECES = st.sampled_from(["Anna", "don't", "3.5", "(x)", "Saint-Malo", "été", "10%", "U.S.", "…", "日本"])
GAPS = st.sampled_from([" ", "  ", "\n", "", "\u00a0"])


def question(passage: str, answer: str | None, start: int = 0) -> dict:
    answers = {"text": [], "start": []} if answer is None else {"text": [answer], "start": [start]}
    return {"id": "1", "passage": passage, "question": "?", "answers": answers}


# --- spans ---


@settings(max_examples=60, derandomize=True)
@given(st.lists(st.tuples(PIECES, GAPS), min_size=1, max_size=12), st.data())
def test_a_span_of_words_comes_back_as_it_stands_in_the_passage(pieces, data):
    """Character offsets to words and back is the identity, whatever stands between the words."""
    passage = "".join(word + gap for word, gap in pieces)
    words = [m.span() for m in WORD.finditer(passage)]
    first = data.draw(st.integers(0, len(words) - 1))
    last = data.draw(st.integers(first, len(words) - 1))
    begin, end = words[first][0], words[last][1]
    row = question(passage, passage[begin:end], begin)
    columns = SpanTarget().encode([row], Words())
    assert columns["span"].tolist() == [[first, last]]
    assert passage[columns["starts"][0][first] : columns["ends"][0][last]] == row["answers"]["text"][0]


@pytest.mark.parametrize(
    ("answer", "start", "units"),
    [
        ("16", 0, (0, 0)),  # inside the word "1600s": the word is taken
        ("1600s", 0, (0, 0)),
        (" in", 5, (1, 1)),  # white space at the edge is no word
        ("in Paris ", 6, (1, 2)),
        ("Par", 9, (2, 2)),
        ("Paris .", 9, (2, 3)),
    ],
)
def test_an_answer_that_cuts_words_takes_the_words_it_touches(answer, start, units):
    passage = "1600s in Paris . End"
    assert passage[start : start + len(answer)] == answer
    assert SpanTarget().encode([question(passage, answer, start)], Words())["span"].tolist() == [list(units)]


def test_an_answer_with_white_space_behind_it_at_the_end_of_the_passage_is_kept():
    assert SpanTarget().encode([question("He is Ben ", "Ben ", 6)], Words())["span"].tolist() == [[2, 2]]


@pytest.mark.parametrize(("answer", "start"), [("d", 6), ("c d", 4), ("a b c d", 0)])
def test_an_answer_beyond_the_cut_is_ignored(answer, start):
    """The model cannot point at it, nor may it learn to point at the last word it sees."""
    assert SpanTarget().encode([question("a b c d", answer, start)], Words(max_length=3))["span"].tolist() == [
        [IGNORED, IGNORED]
    ]


def test_the_last_word_before_the_cut_is_an_answer_like_any_other():
    assert SpanTarget().encode([question("a b c d", "c", 4)], Words(max_length=3))["span"].tolist() == [[2, 2]]


def test_a_question_without_an_answer_is_minus_one_and_remembered():
    target = SpanTarget()
    rows = [question("a b", None), question("a b", "b", 2)]
    target.fit(rows[1:])
    assert target.unanswerable is False
    target.fit(rows)
    assert target.unanswerable is True
    columns = target.encode(rows, Words())
    assert target.collate(columns, np.array([1, 0])).tolist() == [[1, 1], [-1, -1]]


def test_an_answer_is_a_span_for_readers_and_words_for_writers():
    """The first four numbers of a writer are padding, start, end and unknown: others would be
    symbols that nobody means."""
    asked = problem("extract")
    assert type(asked.target("spans")) is SpanTarget and type(asked.target("joined states")) is SpanTarget
    for gives, kind in (("next symbols", SymbolTarget), ("symbols and copies", CopiedAnswer)):
        target = asked.target(gives)
        assert (type(target), target.reserved, target.by_word) == (kind, 4, True)


def test_the_right_answer_is_the_first_and_empty_where_there_is_none():
    assert problem("extract").right({"answers": {"text": ["Paris", "in Paris"], "start": [3, 0]}}) == "Paris"
    assert problem("extract").right({"answers": {"text": [], "start": []}}) == ""


def test_an_empty_passage_has_no_answer_to_point_at():
    assert SpanTarget().encode([question("", "x", 0)], Words())["span"].tolist() == [[IGNORED, IGNORED]]


# --- classes, pairs, tags ---


def test_classes_are_numbered_alike_on_every_machine():
    target = ClassTarget()
    target.fit([{"id": str(i), "label": label} for i, label in enumerate(["b", "c", "a", "b"])])
    assert target.labels == ["a", "b", "c"]
    columns = target.encode([{"id": "x", "label": "c"}, {"id": "y", "label": "a"}], Words())
    assert target.collate(columns, np.array([1, 0])).tolist() == [0, 2]


def test_an_answer_that_training_never_showed_is_the_empty_one():
    """A test answer outside the training answers is a question every model gets wrong, not an
    error."""
    target = AnswerTarget()
    target.fit([{"answer": "milk"}, {"answer": "east"}, {"answer": "milk"}])
    assert target.labels == ["east", "milk", ""]
    assert target.encode([{"answer": "milk"}, {"answer": "milk,apple"}], Words())["label"].tolist() == [1, 2]


def test_candidates_of_one_question_share_a_number():
    rows = [{"id": str(i), "label": label, "group": group} for i, (label, group) in enumerate(["0q", "1q", "0p", "1q"])]
    target = RankTarget()
    labels, groups = target.collate(target.encode(rows, Words()), np.array([3, 2, 0]))
    assert labels.tolist() == [1, 0, 0]
    assert groups.tolist() == [0, 1, 0]


def test_a_relevance_that_is_no_number_names_the_row():
    with pytest.raises(DataError, match=r"row q1-2.*yes"):
        RankTarget().encode([{"id": "q1-2", "label": "yes", "group": "q1"}], Words())


def test_tags_are_cut_with_their_words_and_padded_with_ignored():
    target = TagTarget()
    rows = [
        {"id": "1", "text": ["a", "b", "c"], "tags": ["O", "B-X", "I-X"]},
        {"id": "2", "text": ["d"], "tags": ["O"]},
    ]
    target.fit(rows)
    assert target.labels == ["B-X", "I-X", "O"]
    assert target.collate(target.encode(rows, Words(max_length=2)), np.array([0, 1])).tolist() == [[2, 0], [2, IGNORED]]


def test_a_tag_that_training_never_showed_is_no_ground_for_a_loss():
    target = TagTarget()
    target.fit([{"id": "1", "text": ["a"], "tags": ["O"]}])
    columns = target.encode([{"id": "2", "text": ["a", "b"], "tags": ["B-X", "O"]}], Words())
    assert target.collate(columns, np.array([0])).tolist() == [[IGNORED, 0]]


# --- symbols ---


@pytest.mark.parametrize("reserved", [1, 4])
@given(st.lists(st.text("abc d'", max_size=9), min_size=1, max_size=4))
@settings(max_examples=25, derandomize=True)
def test_characters_come_back_as_they_were_written(reserved, texts):
    target = SymbolTarget(reserved, by_word=False)
    rows = [{"id": str(i), "transcript": text.strip()} for i, text in enumerate(texts)]
    target.fit(rows)
    columns = target.encode(rows, Words())
    assert [target.join(columns["symbols"][i].tolist()) for i in range(len(rows))] == [
        row["transcript"] for row in rows
    ]
    assert columns["symbols"].values.min(initial=reserved) >= reserved, "a reserved number means blank, start or end"
    assert columns["symbols"].values.max(initial=0) < len(target)


def test_words_come_back_in_lower_case_and_rare_ones_as_nothing():
    """An answer word seen once in training is the unknown symbol: it cannot be said."""
    target = SymbolTarget(4, by_word=True)
    rows = [question("-", "the old Harbour"), question("-", "the harbour"), question("-", None)]
    target.fit(rows)
    columns = target.encode(rows, Words())
    assert columns["symbols"][0].tolist()[1] == 3
    assert target.join(columns["symbols"][0].tolist()) == "the harbour"
    assert target.join([1, *columns["symbols"][1].tolist(), 2, 0]) == "the harbour"
    assert len(columns["symbols"][2]) == 0


@pytest.mark.parametrize(("by_word", "longest"), [(False, 9), (True, 2)])
def test_the_longest_training_text_is_known_in_a_kept_model_too(by_word, longest):
    """By it an answer is stopped: one that was kept by an older version has none, and the usual
    limit."""
    target, kept = SymbolTarget(4, by_word), SymbolTarget(4, by_word)
    target.fit([{"transcript": "one"}, {"transcript": "two three"}, {"transcript": ""}])
    assert target.longest == longest and kept.longest == 0
    kept.restore(json.loads(json.dumps(target.state())))
    assert kept.longest == longest
    kept.restore({"reserved": 4, "by_word": by_word, "symbols": ["a"]})


def test_a_character_that_training_never_showed_is_left_out_for_ctc():
    """CTC has no symbol for it, and the blank is no letter."""
    target = SymbolTarget(1, by_word=False)
    target.fit([{"id": "1", "transcript": "ab"}])
    columns = target.encode([{"id": "2", "transcript": "aXb"}], Words())
    assert target.join(columns["symbols"][0].tolist()) == "ab"


def test_symbols_of_a_batch_are_padded_with_zero():
    target = SymbolTarget(1, by_word=False)
    target.fit([{"id": "1", "transcript": "ab"}])
    padded, lengths = target.collate({"symbols": Ragged.of([[1, 2, 1], [2], []])}, np.array([2, 0, 1]))
    assert padded.tolist() == [[0, 0, 0], [1, 2, 1], [2, 0, 0]]
    assert lengths.tolist() == [0, 3, 1]
