"""Characters as Zhang et al. 2015 read them: an alphabet of 69, 1014 positions, backwards."""

from __future__ import annotations

import json
import string

import numpy as np
import pytest

from harness.views.characters import ALPHABET, Characters


def collated(view: Characters, *texts):
    return view.collate(view.encode(texts), np.arange(len(texts)))


def test_the_alphabet_has_the_letters_digits_and_marks_of_the_paper():
    assert len(ALPHABET) == len(set(ALPHABET)) == 69 == Characters().width
    assert set(ALPHABET) == set(string.ascii_lowercase + string.digits + string.punctuation + "\n")


@pytest.mark.parametrize("reverse", [True, False])
def test_vectors_are_what_a_loop_over_the_characters_writes(reverse):
    text = "Ab é\n-?"
    batch = collated(Characters(length=9, reverse=reverse), text, "x" * 12)
    read = text.lower()[::-1] if reverse else text.lower()
    expected = np.zeros((9, 69))
    for position, character in enumerate(read):
        if character in ALPHABET:
            expected[position, ALPHABET.index(character)] = 1
    assert batch.vectors.shape == (2, 9, 69) and batch.vectors.dtype.is_floating_point
    assert np.array_equal(batch.vectors[0].numpy(), expected)
    assert batch.lengths.tolist() == [7, 9] == batch.mask.sum(1).tolist()


def test_read_backwards_a_long_text_is_cut_at_its_beginning():
    """As in the program of Zhang et al. 2015, which begins at the last character."""
    view = Characters(alphabet="abcd", length=2)
    assert collated(view, "abcd").ids.tolist() == [[4, 3]]
    assert collated(Characters(alphabet="abcd", length=2, reverse=False), "abcd").ids.tolist() == [[1, 2]]


def test_blanks_and_strange_characters_are_zero_vectors_inside_the_text():
    batch = collated(Characters(length=4), " 中😀\ud800")
    assert batch.vectors.abs().sum() == 0 and batch.lengths.tolist() == [4]


def test_without_a_length_the_longest_text_of_the_batch_decides():
    view = Characters(length=None, reverse=False)
    columns = view.encode(["abc", "", "a" * 2000])
    assert view.lengths(columns).tolist() == [3, 1, 2000]
    batch = view.collate(columns, np.array([1, 0]))
    assert batch.ids.tolist() == [[0, 0, 0], [1, 2, 3]]
    assert batch.mask.tolist() == [[True, False, False], [True, True, True]]


def test_a_tokenised_text_is_read_with_blanks_between_its_words():
    assert collated(Characters(length=3, reverse=False), ["A", "b"]).ids.tolist() == [[1, 0, 2]]


@pytest.mark.parametrize("alphabet", ["", "aa", "aB"])
def test_an_alphabet_that_cannot_work_is_refused(alphabet):
    with pytest.raises(ValueError, match="alphabet"):
        Characters(alphabet=alphabet)


def test_nothing_is_learnt_so_the_state_is_empty():
    view, other = Characters(), Characters()
    view.fit(["abc"])
    other.restore(json.loads(json.dumps(view.state())))
    assert other.encode(["zé"])["ids"].values.tolist() == view.encode(["zé"])["ids"].values.tolist() == [0, 26]
