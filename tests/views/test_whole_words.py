"""Whole words as pieces: each word is one, and positions still point at the words and characters
of the text."""

from __future__ import annotations

import numpy as np
import pytest

from harness.views.subwords import SPECIAL
from harness.views.whole_words import WholeWords

TRAIN = ["The cat saw the dog.", ["the", "U.S.", "cat", "[SEP]"], "a b a dog"]


def fitted(**options) -> WholeWords:
    view = WholeWords(**options)
    view.fit(TRAIN)
    return view


def named(view: WholeWords, text: str | list[str]) -> list[str]:
    """The pieces of a text."""
    return [view.tokenizer.id_to_token(int(id)) for id in view.encode([text])["ids"].values]


def test_the_vocabulary_has_the_commonest_words_and_then_the_first_of_the_alphabet():
    """By hand: "a", "cat", "dog" and "the" stand twice, all others once."""
    view = fitted(size=11)
    assert view.width == 11
    assert [view.tokenizer.id_to_token(n) for n in range(11)] == [*SPECIAL, "a", "cat", "dog", "the", ".", "The"]
    assert named(view, "the U.S. cat saw") == ["the", "[UNK]", ".", "[UNK]", ".", "cat", "[UNK]"]


def test_a_word_that_the_corpus_gives_as_one_is_one_piece():
    """A tagged "U.S." that were read as four would be labelled by its first letter."""
    view = fitted()
    columns = view.encode([["the", "U.S.", "zebra"], ["cat"]])
    batch = view.collate(columns, np.array([0, 1]))
    assert named(view, ["the", "U.S.", "zebra"]) == ["the", "U.S.", "[UNK]"]
    assert batch.firsts.tolist() == [[1, 2, 3], [1, 0, 0]]
    assert batch.word_mask.tolist() == [[True] * 3, [True, False, False]]


def test_a_text_that_spells_a_special_piece_does_not_get_it():
    """Neither where training had it as a word, nor elsewhere: it would end a sequence."""
    assert named(fitted(), ["[SEP]", "[PAD]", "cat"]) == ["[UNK]", "[UNK]", "cat"]


def test_case_is_kept_unless_it_is_not_wanted():
    assert named(fitted(), "The CAT") == ["The", "[UNK]"]
    assert named(fitted(lower=True), "The CAT") == ["the", "cat"]


def test_the_places_of_pieces_are_those_of_words():
    """An answer is copied out by them."""
    text = "  the dog's  Café, 日本"
    starts, ends = (part[0] for part in fitted().spans([text]))
    assert [text[a:b] for a, b in zip(starts, ends, strict=True)] == ["the", "dog's", "Café", ",", "日本"]
    assert len(starts) == len(named(fitted(), text))


def test_no_word_continues_another():
    """Spans of words that are masked together begin at any word, one that begins with ## too."""
    view = WholeWords()
    view.fit([["##s", "a"]])
    assert view.width == len(SPECIAL) + 2 and not view.continues.any()


@pytest.mark.parametrize("texts", [["", "the"], [[], ["the"]]])
def test_an_empty_text_has_no_piece(texts):
    view = fitted()
    batch = view.collate(view.encode(texts), np.array([0, 1]))
    assert batch.ids.tolist() == [[view.start, view.separator, view.pad], [view.start, view.words["the"], 3]]


def test_a_restored_view_and_one_that_is_given_anothers_state_read_the_same():
    view, restored, given = fitted(size=9), WholeWords(size=9), WholeWords(size=50)
    restored.restore(view.state())
    given.learnt = view.state()
    given.fit(["other words altogether"])
    assert named(restored, "the dog saw") == named(given, "the dog saw") == ["the", "dog", "[UNK]"]
    assert given.width == 9


def test_texts_are_packed_with_a_separator_behind_each():
    view = fitted(max_length=6)
    packed = view.packed(view.encode(["the cat", "a dog saw"]))
    words = [[view.tokenizer.id_to_token(int(id)) for id in text] for text in (packed["ids"][0], packed["ids"][1])]
    assert words == [["the", "cat", "[SEP]", "a"], ["dog", "saw", "[SEP]"]]
