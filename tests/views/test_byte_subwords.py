"""Pieces of bytes: no character is lost, and positions still point at the words and characters of
the text."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.views.byte_subwords import ByteSubwords
from harness.views.subwords import SPECIAL

TRAIN = ["the banana bandana band sat on the mat", "a cat and the band's cats sat in 2019", "Café BANANA!! ban"] * 3


def fitted(size: int = 300, **options) -> ByteSubwords:
    view = ByteSubwords(size=size, **options)
    view.fit(TRAIN)
    return view


VIEW = fitted()


def ids_of(text: str | list[str], view: ByteSubwords = VIEW) -> list[int]:
    return view.encode([text])["ids"].values.tolist()


def again(ids: list[int], view: ByteSubwords = VIEW) -> str:
    """The text of pieces."""
    return view.tokenizer.decode(ids, skip_special_tokens=False)


@settings(max_examples=200)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_a_text_is_divided_into_itself(text):
    """Characters that training never showed, controls and combining marks too: none is unknown."""
    ids = ids_of(text)
    assert again(ids) == text
    assert not set(ids) & set(range(len(SPECIAL)))


@pytest.mark.parametrize(
    "text",
    ["👩‍👩‍👧 é", "e\u0301 é", "\x00\ufffe\t\n  \u00ad", "日本語", "Ġ Ċ", " both ends  ", "<|endoftext|> [SEP][PAD]"],
)
def test_a_text_that_is_hard_to_divide_comes_back(text):
    """Emoji of several characters, marks by themselves, and the signs by which bytes are named in
    the vocabulary."""
    assert again(ids_of(text)) == text


def test_a_text_that_spells_a_special_piece_does_not_get_it():
    """A review with "[SEP]" in it must not end its sequence."""
    assert not set(ids_of("[CLS] a [SEP][PAD] [MASK]")) & set(range(len(SPECIAL)))


def test_a_character_that_training_never_showed_is_its_bytes():
    assert [VIEW.tokenizer.id_to_token(id) for id in ids_of("日")] == ["æ", "Ĺ", "¥"]


def test_the_vocabulary_has_the_special_pieces_the_bytes_and_merges():
    assert VIEW.width == 300 and [VIEW.tokenizer.id_to_token(id) for id in range(5)] == SPECIAL
    assert fitted(size=10).width == len(SPECIAL) + 256, "bytes are never left out"
    assert len(ids_of("banana")) < len("banana")


def test_training_again_gives_the_same_tokenizer():
    assert all(fitted().state() == VIEW.state() for _ in range(3))


def test_the_commonest_pair_is_merged_first():
    """By hand: "ab" stands four times, "bc" three times, and "abc" is "ab" and "c"."""
    view = ByteSubwords(size=263)
    view.fit(["abc abc", "abc ab"])
    named = [view.tokenizer.id_to_token(id) for id in range(261, 263)]
    assert named == ["ab", "abc"]


def test_no_piece_crosses_letters_digits_and_marks():
    """The paper: "dog", "dog!" and "dog?" would each take a place of the vocabulary."""
    view = ByteSubwords(size=400)
    view.fit(["dog! dog! dog2 dog2 the dog"] * 9)
    for text in ("dog!", "dog2", "the dog"):
        parts = [again([id], view) for id in ids_of(text, view)]
        assert "".join(parts) == text
        assert all(re.fullmatch(r" ?([a-z]+|\d+|!+)", part) for part in parts)
    assert again(ids_of("the dog", view)[1:], view) == " dog", "the space belongs to the word behind it"


def test_case_is_kept_unless_it_is_not_wanted():
    assert ids_of("BANANA") != ids_of("banana")
    lower = fitted(lower=True)
    assert ids_of("BANANA Cat", lower) == ids_of("banana cat", lower)
    assert again(ids_of("BANANA", lower), lower) == "banana"


def test_words_are_read_as_in_a_text_and_each_has_a_first_piece():
    """A tagged word without its space would be another one than training showed; an empty word has
    a place too."""
    words = ["the", "bandana's", "日", "", "cats"]
    columns = VIEW.encode([words, ["mat"]])
    batch = VIEW.collate(columns, np.array([0, 1]))
    assert batch.word_mask.tolist() == [[True] * 5, [True] + [False] * 4]
    begins = batch.firsts[0].tolist()
    parts = [again(batch.ids[0, a:b].tolist()) for a, b in pairwise([*begins, int(batch.lengths[0]) - 1])]
    assert parts == ["the", " bandana's", " 日", " ", " cats"]
    assert ids_of(["the", "cat", "sat"]) == ids_of("the cat sat")


def test_the_places_of_pieces_are_those_of_words_without_the_space():
    """An answer that is copied out would begin with a space, and be scored as another one."""
    text = "the  band, naïve 日本 cats"
    starts, ends = (part[0].tolist() for part in VIEW.spans([text]))
    assert len(starts) == len(ids_of(text))
    assert starts == sorted(starts) and ends == sorted(ends)
    for word in ("band", "naïve", "日本", "cats"):
        begin = text.index(word)
        first, last = starts.index(begin), len(ends) - 1 - ends[::-1].index(begin + len(word))
        assert first <= last and text[starts[first] : ends[last]] == word


def test_a_restored_view_reads_the_same():
    view = ByteSubwords(size=300)
    view.restore(VIEW.state())
    assert ids_of("a bandana 日!", view) == ids_of("a bandana 日!")
