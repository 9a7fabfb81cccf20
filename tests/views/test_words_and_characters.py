"""Words with their spelling: a tagger reads case and suffixes here that the lower-cased words have
lost."""

from __future__ import annotations

import json

import numpy as np

from harness.views.words import PAD, UNKNOWN, Words
from harness.views.words_and_characters import WordsAndCharacters

TRAIN = [["EU", "rejects", "German", "call"], ["call", "EU"]]


def fitted(**options) -> WordsAndCharacters:
    view = WordsAndCharacters(**options)
    view.fit(TRAIN)
    return view


def test_characters_are_padded_as_a_loop_would():
    view = fitted()
    texts = [["EU", "call", "x"], ["German"]]
    batch = view.collate(view.encode(texts), np.array([0, 1]))
    assert batch.characters.shape == (2, 3, 6)
    for row, text in enumerate(texts):
        for column, word in enumerate([*text, *[""] * (3 - len(text))]):
            ids = view.characters.ids(word)
            assert batch.characters[row, column].tolist() == ids + [PAD] * (6 - len(ids))
            assert batch.character_mask[row, column].tolist() == [True] * len(ids) + [False] * (6 - len(ids))


def test_word_fields_are_those_of_the_word_view():
    """A model of words must run on this batch unchanged."""
    words = Words()
    words.fit(TRAIN)
    view = fitted()
    ours, theirs = (v.collate(v.encode(TRAIN), np.array([1, 0])) for v in (view, words))
    assert ours._fields[: len(theirs._fields)] == theirs._fields
    assert all(a.tolist() == b.tolist() for a, b in zip(ours, theirs, strict=False))
    assert view.embeds and ours._replace(vectors=ours.mask).vectors is ours.mask


def test_case_is_kept_in_characters_and_new_characters_are_unknown():
    view = fitted()
    batch = view.collate(view.encode([["eu", "EU", "ß"]]), np.array([0]))
    assert batch.characters[0, 1].tolist() == view.characters.ids("EU")
    assert batch.characters[0, 0].tolist() == [view.characters.ids("e")[0], UNKNOWN]
    assert batch.characters[0, 2, 0] == UNKNOWN
    assert view.alphabet_size == 2 + len(set("EUrejectsGermancall"))


def test_long_words_are_cut_and_an_empty_word_has_one_character():
    """A word without any character would be a maximum over nothing."""
    view = fitted(word_length=3)
    batch = view.collate(view.encode([["rejects"], [""], []]), np.arange(3))
    assert batch.characters.tolist() == [[view.characters.ids("rej")], [[UNKNOWN, 0, 0]], [[UNKNOWN, 0, 0]]]
    assert batch.lengths.tolist() == [1, 1, 1]


def test_texts_are_cut_in_words_and_characters_alike():
    view = fitted(max_length=2)
    batch = view.collate(view.encode([["EU", "call", "German"]]), np.array([0]))
    assert batch.ids.shape == (1, 2) and batch.characters.shape == (1, 2, 4)


def test_state_survives_json():
    view, other = fitted(), WordsAndCharacters()
    other.restore(json.loads(json.dumps(view.state())))
    before, after = (v.encode([*TRAIN, ["ZE"]]) for v in (view, other))
    assert all(np.array_equal(before[name].values, after[name].values) for name in before)
    assert other.alphabet_size == view.alphabet_size
