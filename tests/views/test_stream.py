"""Texts as streams: the words before and the words themselves, whole and in stretches."""

from __future__ import annotations

import numpy as np
import pytest

from harness.views.stream import UNKNOWN, Stream

TEXTS = ["b b a", ["c"], "", ["a", "b", UNKNOWN, "b", "c", "a", "b"]]


@pytest.fixture
def view() -> Stream:
    """Fitted on words of falling frequency: b, a, c are rows 2, 3, 4 of the word table."""
    made = Stream()
    made.fit(TEXTS)
    return made


def test_a_word_is_read_behind_the_one_before_it_and_the_first_behind_none(view):
    batch = view.collate(view.encode(TEXTS), np.array([0, 3]))
    assert batch.ids.tolist() == [[0, 2, 2, 0, 0, 0, 0], [0, 3, 2, 1, 2, 4, 3]]
    assert batch.next.tolist() == [[1, 1, 2, 0, 0, 0, 0], [2, 1, 0, 1, 3, 2, 1]]
    assert batch.mask.sum(1).tolist() == batch.lengths.tolist() == [3, 7] and batch.begins.all()


def test_words_that_training_lacks_are_the_unknown_one_whose_mark_is_no_other_word(view):
    """Were the mark a word of its own, a network could foretell either, and would be punished."""
    assert sorted(view.vocabulary.words) == ["a", "b", "c"]
    assert view.encode([["z", UNKNOWN, "A"]])["next"].values.tolist() == [0, 0, 0]


@pytest.mark.parametrize("longest", [1, 2, 3, 4, 7, 100])
def test_stretches_have_every_word_once_in_order_and_know_their_beginning(view, longest):
    """A word that is read twice, or never, makes another corpus of it."""
    whole = view.encode(TEXTS)
    cut = view.cut(whole, longest)
    for name in ("ids", "next"):
        assert np.concatenate([cut[name][row] for row in range(len(cut[name]))]).tolist() == whole[name].values.tolist()
    expected = [min(longest, n - start) for n in (3, 1, 0, 7) for start in range(0, n, longest)]
    assert cut["ids"].lengths.tolist() == cut["next"].lengths.tolist() == expected
    assert cut["begins"].tolist() == [start == 0 for n in (3, 1, 0, 7) for start in range(0, n, longest)]


def test_a_network_is_given_the_words_before_and_not_those_it_foretells(view):
    """Of the second and third word of the last text it sees the first and the second."""
    batch = view.collate(view.encode(TEXTS), np.array([0, 3]))
    words = batch.before(slice(1, 2), 1, 3)
    assert words.ids.tolist() == [[3, 2]] and words.lengths.tolist() == [2]
    assert not hasattr(words, "next")
