"""Words and marks."""

from __future__ import annotations

import pytest

from architectures.blocks.spans import is_word, phrases, sentences


@pytest.mark.parametrize(
    ("text", "expected"),
    [("ship", True), ("3", True), ("_", True), ("__init__", True), ("_x", True), ("\u00e9t\u00e9", True), ("a_", True)]
    + [(mark, False) for mark in (".", "-", "?", "'", "")],
)
def test_letters_digits_and_underscores_make_a_word(text, expected):
    """What is taken for a mark is no part of an answer."""
    assert is_word(text) is expected


def test_no_phrase_begins_with_a_mark_and_names_of_programs_are_words():
    [sentence] = sentences("(__init__ runs)")
    found = [" ".join(sentence.words[first:last]) for first, last in phrases(sentence, 3)]
    assert found == ["__init__", "__init__ runs", "runs"]
