"""Letter trigrams word by word: which bag belongs to which word of which text."""

from __future__ import annotations

import json

import numpy as np
import pytest

from harness.views.bag import LetterTrigrams, letter_trigrams
from harness.views.word_trigrams import WordTrigramBatch, WordTrigrams

TRAIN = ["the banana sat", "a banana", "cats"]
TEXTS = ["the unseen banana sat", "", "qqq", "Cats the", "a"]


def fitted(**options) -> WordTrigrams:
    view = WordTrigrams(**options)
    view.fit(TRAIN)
    return view


def read(view: WordTrigrams, *texts: str) -> WordTrigramBatch:
    return view.collate(view.encode(texts), np.arange(len(texts)))


def bags(view: WordTrigrams, batch: WordTrigramBatch) -> list[list[str]]:
    """The trigrams of each word of a batch."""
    ends = [*batch.offsets.tolist()[1:], len(batch.ids)]
    return [[view.trigrams[i] for i in batch.ids[a:b]] for a, b in zip(batch.offsets.tolist(), ends, strict=True)]


def looped(view: WordTrigrams, text: str) -> list[list[str]]:
    return [[t for t in letter_trigrams(word) if t in view.trigrams] for word in text.split() or [""]]


@pytest.mark.parametrize("rows", [[0, 1, 2, 3, 4], [3, 0], [4, 4, 1], [1]])
def test_every_word_has_its_own_trigrams_in_the_order_of_the_chosen_texts(rows):
    """A bag shifted by one word would give each window its neighbour's letters. "banana" has "ana"
    twice."""
    view = fitted()
    batch = view.collate(view.encode(TEXTS), np.array(rows))
    expected = [looped(view, TEXTS[row]) for row in rows]
    assert bags(view, batch) == [word for text in expected for word in text]
    assert batch.lengths.tolist() == [len(text) for text in expected]
    longest = max(map(len, expected))
    assert batch.mask.tolist() == [[t < len(text) for t in range(longest)] for text in expected]


def test_a_word_without_known_trigrams_keeps_its_place_and_an_empty_text_has_one_word():
    """Otherwise its neighbours would come to stand side by side, or a maximum would run over no
    window."""
    view = fitted()
    assert bags(view, read(view, "a qqq a")) == [["#a#"], [], ["#a#"]]
    assert bags(view, read(view, "", "")) == [[], []] and read(view, "", "").mask.tolist() == [[True], [True]]


def test_the_words_of_a_text_add_up_to_the_bag_that_dssm_reads():
    view, whole = fitted(), LetterTrigrams()
    whole.fit(TRAIN)
    text = "banana the banana zzz"
    counted = whole.collate(whole.encode([text]), np.array([0]))
    assert (
        np.bincount(read(view, text).ids, minlength=view.width).tolist()
        == np.bincount(counted.ids, weights=counted.weights, minlength=whole.width).astype(int).tolist()
    )


def test_long_texts_are_cut_and_lengths_count_words():
    view = fitted(max_length=2)
    columns = view.encode(["the banana sat", "cats"])
    assert view.lengths(columns).tolist() == [2, 1]
    assert bags(view, view.collate(columns, np.array([0]))) == looped(view, "the banana")


def test_state_survives_json():
    view, other = fitted(), WordTrigrams()
    other.restore(json.loads(json.dumps(view.state())))
    assert bags(other, read(other, *TEXTS)) == bags(view, read(view, *TEXTS))
