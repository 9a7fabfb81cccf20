"""Whole words with their characters: each word of a batch has its own, wherever it stands."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from harness.ragged import Ragged
from harness.views.spelt_words import BEGIN, END, OTHER, SpeltBatch, SpeltWords
from harness.views.whole_words import WholeWords

TEXTS = ["the cat sat", "a Zebra ran far away", "日x"]
OTHERS = ["so it did", "a cat", "the end of it"]


def fitted(**options) -> SpeltWords:
    view = SpeltWords(**{"word_length": 5} | options)
    view.fit(TEXTS[:1])
    return view


def read(row: np.ndarray) -> str:
    """The characters of one word of a batch; marks that are no words by their number."""
    numbers = [int(number) for number in row if number]
    return "".join(chr(n) if n >= 32 else {BEGIN: "<", END: ">", OTHER: "?"}.get(n, str(n)) for n in numbers)


def spellings(batch: SpeltBatch) -> list[list[str]]:
    return [[read(word) for word in row.numpy()] for row in batch.characters]


def test_each_word_is_spelt_an_unknown_one_too():
    """A long one is cut, and a character beyond Latin-1 is one for all such."""
    view = fitted()
    batch = view.collate(view.encode(TEXTS), np.array([1, 2]))
    assert spellings(batch) == [
        ["<4>", "<a>", "<Zebra>", "<ran>", "<far>", "<away>", "<5>"],
        ["<4>", "<?x>", "<5>", "", "", "", ""],
    ]
    assert read(view.collate(view.encode(["elephant"]), np.array([0])).characters[0, 1].numpy()) == "<eleph>"


@pytest.mark.parametrize("stride", [0, 2])
def test_pairs_and_windows_are_those_of_whole_words_and_spelt_as_they_stand(stride):
    """Words of the second text, which lie in columns of their own, are not those of the first."""
    view, plain = fitted(max_length=9, stride=stride), WholeWords(max_length=9, stride=stride)
    plain.fit(TEXTS[:1])
    rows = np.array([2, 0, 1])
    batch = view.collate_pair(view.encode(TEXTS), view.encode(OTHERS), rows, cut="second")
    expected = plain.collate_pair(plain.encode(TEXTS), plain.encode(OTHERS), rows, cut="second")
    for name in ("ids", "mask", "segments", "lengths", "firsts", "word_mask"):
        assert getattr(batch, name).tolist() == getattr(expected, name).tolist(), name
    assert spellings(batch)[0][: int(batch.lengths[0])] == [
        "<4>",
        "<?x>",
        "<5>",
        "<the>",
        "<end>",
        "<of>",
        "<it>",
        "<5>",
    ]


def test_stretches_are_those_of_whole_words_with_their_characters():
    view, plain = fitted(max_length=6), WholeWords(max_length=6)
    plain.fit(TEXTS[:1])
    packed = view.packed(view.encode(TEXTS))
    assert packed["ids"].values.tolist() == plain.packed(plain.encode(TEXTS))["ids"].values.tolist()
    assert spellings(view.collate(packed, np.array([0]))) == [["<4>", "<the>", "<cat>", "<sat>", "<5>", "<5>"]]
    cut = view.cut(view.encode(TEXTS), 2)
    assert [[read(word) for word in cut["characters"][row]] for row in range(3)] == [
        ["<the>", "<cat>"],
        ["<sat>"],
        ["<a>", "<Zebra>"],
    ]


def test_a_batch_of_a_large_corpus_takes_the_memory_of_a_batch():
    """Numbering every word of a corpus for each batch of it takes seconds a pass and more."""
    view, words = fitted(), 1_000_000
    offsets = np.array([0, 3, words])
    ids, characters = np.full(words, 6), np.zeros((words, 7), dtype=np.uint8)
    columns = {"ids": Ragged(ids, offsets), "characters": Ragged(characters, offsets)}
    tracemalloc.start()
    try:
        view.collate(columns, np.array([0]))
        view.collate_pair(columns, columns, np.array([0]))
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


def test_an_empty_text_and_a_tagged_one_are_read():
    view = fitted()
    assert spellings(view.collate(view.encode([""]), np.array([0]))) == [["<4>", "<5>"]]
    tagged = view.collate(view.encode([["U.S.", "cat"]]), np.array([0]))
    assert spellings(tagged) == [["<4>", "<U.S.>", "<cat>", "<5>"]] and tagged.firsts.tolist() == [[1, 2]]
