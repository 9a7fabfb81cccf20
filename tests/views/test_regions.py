"""One-hot convolutions see of a text what its regions hold: which words, in which places, and
which regions there are at all."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.views.regions import RegionBatch, Regions

VOCABULARY = "abc"
"""The words that training shows; "x" is unknown."""


def fitted(**options) -> Regions:
    view = Regions(**options)
    view.fit([" ".join(VOCABULARY), "A"])
    return view


def read(view: Regions, *texts: list[str] | str) -> RegionBatch:
    return view.collate(view.encode(texts), np.arange(len(texts)))


def dense(view: Regions, batch: RegionBatch, text: int) -> list[list[int]]:
    """The vectors that a text's places of ones stand for; place 0 stands for nothing."""
    vectors = np.zeros((int(batch.lengths[text]), view.width), dtype=int)
    for region, ones in enumerate(batch.ones[text, batch.mask[text]]):
        vectors[region, ones] += 1
    return vectors[:, 1:].tolist()


def one_hot(view: Regions, word: str) -> list[int]:
    return [int(word == known) for known in view.vocabulary.words]


def written_out(view: Regions, text: list[str], size: int, bag: bool, stride: int, empty: bool) -> list[list[int]]:
    """The regions of a text, from dense one-hot words and zeros beside the text."""
    found: list[list[int]] = []
    before = None
    for start in range(1 - size, len(text), stride):
        inside = [text[place] if 0 <= place < len(text) else "" for place in range(start, start + size)]
        words = [one_hot(view, word) for word in inside]
        vector = (
            [max(column) for column in zip(*words, strict=True)] if bag else [one for word in words for one in word]
        )
        if (any(vector) or empty) and not (bag and vector == before):
            found.append(vector)
        before = vector
    return found or [[0] * (view.width - 1)]


@settings(max_examples=150)
@given(
    st.lists(st.lists(st.sampled_from("abcx"), min_size=1, max_size=9), min_size=1, max_size=3),
    st.integers(1, 4),
    st.booleans(),
    st.integers(1, 3),
    st.booleans(),
)
def test_regions_are_those_of_dense_one_hot_words(texts, size, bag, stride, empty):
    """A word at the wrong place, a bag that counts, a region that is lost at an end or said twice
    would each show here; whatever the neighbours in the batch."""
    view = fitted(size=size, bag=bag, stride=stride, empty=empty)
    batch = read(view, *texts)
    for number, text in enumerate(texts):
        assert dense(view, batch, number) == written_out(view, text, size, bag, stride, empty)
    assert not batch.ones[~batch.mask].any() and batch.mask.sum(1).tolist() == batch.lengths.tolist()


def test_a_vector_is_as_long_as_the_words_of_a_region_or_as_the_vocabulary():
    assert (fitted(size=4).width, fitted(size=4, bag=True).width) == (1 + 4 * 3, 1 + 3)


def test_only_the_commonest_words_are_known_whatever_their_case():
    view = Regions(size=1, most=2)
    view.fit(["b B c", "d C b"])
    assert view.vocabulary.words == ["b", "c"]
    assert dense(view, read(view, "C d B"), 0) == [[0, 1], [1, 0]]


def test_a_word_that_training_shows_once_is_known():
    """Where other views take it for the unknown word: the paper counts up to a number of words."""
    assert len(fitted().vocabulary.words) == 3


def test_every_text_has_a_region():
    """A maximum over none would be no number."""
    for options in ({}, {"bag": True}, {"empty": True}, {"size": 1, "empty": True}):
        batch = read(fitted(**options), "x x", "", "a")
        assert (batch.lengths >= 1).all() and not batch.ones[1].any() and batch.ones[2].any(), options


def test_without_left_out_regions_each_word_has_one():
    view = fitted(size=1, empty=True)
    assert dense(view, read(view, "a x a"), 0) == [[1, 0, 0], [0, 0, 0], [1, 0, 0]]


def test_long_texts_are_cut_and_lengths_count_regions():
    view = fitted(size=2, max_length=3)
    columns = view.encode(["a b c a", "b"])
    assert view.lengths(columns).tolist() == [4, 2]
    with pytest.raises(ValueError, match="stride=0"):
        view.changed({"stride": 0})


def test_state_survives_json():
    view, other = fitted(), Regions()
    other.restore(json.loads(json.dumps(view.state())))
    assert other.width == view.width
    assert dense(other, read(other, "c a b"), 0) == dense(view, read(view, "c a b"), 0)
