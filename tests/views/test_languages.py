"""Pieces of texts in two languages, which know their language."""

from __future__ import annotations

import json

import numpy as np
import pytest

from harness.views.languages import SECOND, TwoLanguages
from tests.support.plain_text import batch, packed

TRAIN = ["a cat sat", f"{SECOND} der hund saß", f"a cat sat {SECOND} der hund saß", ""]


@pytest.fixture(scope="module")
def view() -> TwoLanguages:
    made = TwoLanguages(size=60, max_length=12)
    made.fit(TRAIN)
    return made


def words(view: TwoLanguages, *texts: str) -> list[list[str]]:
    """The pieces of texts as they are read, with padding."""
    return [[view.tokenizer.id_to_token(int(piece)) for piece in row] for row in batch(view, *texts).ids]


def test_a_text_in_both_languages_is_two_sequences_behind_each_other(view):
    """Each side begins and ends as a text alone does; else a side would be read as it never is
    alone."""
    found = words(view, TRAIN[2], TRAIN[1])
    assert found[0] == ["[CLS]", "a", "cat", "sat", "[SEP]", "[CLS]", "der", "hund", "sa", "##ß", "[SEP]"] or (
        found[0] == ["[CLS]", "a", "cat", "sat", "[SEP]", "[CLS]", "der", "hund", "saß", "[SEP]"]
    )
    assert found[1][:3] == ["[CLS]", "der", "hund"]


def test_every_piece_has_its_language_and_so_have_the_marks_around_a_side(view):
    """A German text would else begin in English."""
    read = batch(view, "a cat", f"{SECOND} der hund", f"a {SECOND} der hund", "", SECOND)
    assert read.marks.tolist() == [
        [0, 0, 0, 0, 0, 0, 0],
        [1, 1, 1, 1, 0, 0, 0],
        [0, 0, 0, 1, 1, 1, 1],
        [0, 0, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 0, 0],
    ]
    assert read.lengths.tolist() == [4, 4, 7, 2, 2]


def test_a_text_that_is_too_long_keeps_its_languages(view):
    read = batch(view, f"a cat sat {SECOND} {'der hund ' * 9}", f"{SECOND} {'der hund ' * 9}")
    assert read.lengths.tolist() == [12, 12] and (read.ids[:, -1] == view.separator).all()
    assert read.marks.tolist() == [[0] * 5 + [1] * 7, [1] * 12]


def test_a_tokenised_text_and_two_joined_ones_have_no_marks(view):
    """Tasks in English alone need none."""
    assert batch(view, ["a", "cat"]).marks.numel() == 0
    columns = view.encode(["a cat", "a"])
    assert view.collate_pair(columns, columns, np.arange(2)).marks.numel() == 0


def test_the_vocabulary_is_of_both_languages_and_without_the_mark(view):
    known = view.tokenizer.get_vocab()
    assert {"cat", "hund"} <= known.keys() and SECOND not in known


def test_pieces_are_counted_as_they_are_read(view):
    """By hand, with the separator and the beginning inside of a text in both."""
    number = view.tokenizer.token_to_id
    assert view.counts[number("cat")] == view.counts[number("hund")] == 2
    assert view.counts[view.separator] == view.counts[view.start] == 1
    assert view.counts.sum() == view.encode(TRAIN)["ids"].values.size and len(view.counts) == view.width


def test_languages_fill_sequences_of_their_own_and_a_pair_stands_alone(view):
    """A stream in two languages would be a pair of texts that do not say the same."""
    read = packed(view, *["a cat", f"{SECOND} der hund", f"a {SECOND} der", "sat", f"{SECOND} hund"] * 3)
    end, cat, a, sat, hund, der = (view.tokenizer.token_to_id(w) for w in ("[SEP]", "cat", "a", "sat", "hund", "der"))
    rows = [ids[1 : length - 1].tolist() for ids, length in zip(read.ids, read.lengths, strict=True)]
    english, german = [a, cat, end, sat, end] * 3, [der, hund, end, hund, end] * 3
    assert rows[:4] == [english[:10], english[10:], german[:10], german[10:]]
    assert rows[4:] == [[a, end, view.start, der]] * 3
    languages = [{*marks[:length].tolist()} for marks, length in zip(read.marks[:4], read.lengths[:4], strict=True)]
    assert languages == [{0}, {0}, {1}, {1}]
    assert read.marks[4:, :6].tolist() == [[0, 0, 0, 1, 1, 1]] * 3


def test_a_corpus_in_one_language_is_packed_without_the_other(view):
    assert packed(view, "a cat", "sat").marks.tolist() == [[0] * 7]
    assert packed(view, f"{SECOND} hund").marks.tolist() == [[1] * 4]
    columns = view.packed(view.encode([["a", "cat"], ["sat"]]))
    assert len(columns["ids"]) == 1 and "marks" not in columns


def test_what_was_fitted_comes_back(view):
    """Counts too: a model that is trained on would else ask other pieces."""
    other = TwoLanguages(size=60, max_length=12)
    other.restore(json.loads(json.dumps(view.state())))
    assert other.counts.tolist() == view.counts.tolist()
    assert batch(other, TRAIN[2]).ids.tolist() == batch(view, TRAIN[2]).ids.tolist()


def test_a_view_that_reads_by_anothers_pieces_has_its_counts(view):
    """A child counts as its parent did."""
    child = TwoLanguages(size=60, max_length=12)
    child.learnt = view.state()
    child.fit(["the dog", "the dog"])
    assert child.counts.tolist() == view.counts.tolist()
