"""Sentences of texts against a loop over words: where they begin, what stands beside them, and the
numbers that are drawn for them."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from architectures.blocks.sentences import Sentences, beginnings, sentences
from harness.views.subwords import SubwordBatch
from harness.views.whole_words import WholeWords
from tests.support.plain_text import batch, noise_of, packed, sentences_of

TEXTS = ["a b . c d ! ? b", "c", "d . . . a ? c b a d .", "b . a"]


@pytest.fixture(scope="module")
def view() -> WholeWords:
    made = WholeWords(size=20, max_length=20)
    made.fit(TEXTS)
    return made


def words_of(view: WholeWords, pieces: SubwordBatch) -> list[str]:
    """The words of each text between its marks."""
    names = {number: word for word, number in view.tokenizer.get_vocab().items()}
    found = []
    for ids, length in zip(pieces.ids.tolist(), pieces.lengths.tolist(), strict=True):
        if length:
            assert (ids[0], ids[length - 1]) == (view.start, view.separator)
        found.append(" ".join(names[number] for number in ids[1 : length - 1]) if length else "none")
    assert torch.equal(pieces.mask.sum(1), pieces.lengths) and not pieces.segments.any()
    assert torch.equal(pieces.mask.sort(descending=True).values, pieces.mask)
    return found


def split(text: str) -> list[str]:
    """The sentences of a text, by a loop."""
    return [" ".join(words) for words in sentences_of(text)]


def test_sentences_are_those_of_a_loop(view):
    found = sentences(batch(view, *TEXTS), view, 30)
    assert words_of(view, found.pieces) == [sentence for text in TEXTS for sentence in split(text)]
    assert words_of(view, found.pieces) == ["a b .", "c d ! ?", "b", "c", "d . . .", "a ?", "c b a d .", "b .", "a"]
    assert found.rows.tolist() == found.texts.tolist() == [0, 0, 0, 1, 2, 2, 2, 3, 3]


def test_texts_of_training_that_stand_in_one_row_stay_apart(view):
    """Rows of 18 pieces and two marks: the third text goes on in the second, as one of its own."""
    found = sentences(packed(view, *TEXTS), view, 30)
    assert words_of(view, found.pieces)[:5] == ["a b .", "c d ! ?", "b", "c", "d . . ."]
    assert words_of(view, found.pieces)[5:] == ["a ?", "c", "b a d .", "b .", "a"]
    assert found.rows.tolist() == [0, 0, 0, 0, 0, 0, 0, 1, 1, 1]
    assert found.texts.tolist() == [0, 0, 0, 1, 2, 2, 2, 3, 4, 4]


def test_of_a_long_sentence_the_first_words_are_read(view):
    found = sentences(batch(view, "a b c d . b", "c"), view, 2)
    assert words_of(view, found.pieces) == ["a b", "b", "c"]
    assert found.pieces.ids.shape == (3, 4)


def test_an_empty_text_is_an_empty_sentence(view):
    found = sentences(batch(view, "", "a . b"), view, 30)
    assert words_of(view, found.pieces) == ["", "a .", "b"]
    assert words_of(view, found.beside(1)) == ["", "b", "none"]


def test_a_mark_that_the_vocabulary_lacks_ends_nothing():
    view = WholeWords(size=20)
    view.fit(["a b"])
    assert len(sentences(batch(view, "a . b"), view, 30).rows) == 1


@pytest.mark.parametrize("step", [-2, -1, 1, 2])
@pytest.mark.parametrize("read", [batch, packed])
def test_what_stands_beside_a_sentence_is_of_its_text(view, step, read):
    """Nothing where the text begins or ends; a sentence that is alone has an empty one, so that
    each text is asked something."""
    found = sentences(read(view, *TEXTS), view, 30)
    every, texts = words_of(view, found.pieces), found.texts.tolist()
    expected = []
    for number, text in enumerate(texts):
        other = number + step
        inside = 0 <= other < len(texts) and texts[other] == text
        expected.append(every[other] if inside else "" if texts.count(text) == 1 else "none")
    assert words_of(view, found.beside(step)) == expected
    assert words_of(view, found.pieces) == every, "nor does asking change what is read"


def test_a_sentence_has_the_numbers_of_its_places_in_its_text(view):
    """The same in each batch, on several devices, and when a training goes on."""
    pieces = batch(view, *TEXTS)
    found = sentences(pieces, view, 30)
    drawn, expected = found.drawn(noise_of(pieces, 1, 2)), noise_of(pieces, 1, 2).uniform(pieces.ids.shape[1])
    words = 0
    for number, row in enumerate(found.rows.tolist()):
        for place in range(1, int(found.pieces.lengths[number]) - 1):
            at = int(found.places[number, place])
            assert found.pieces.ids[number, place] == pieces.ids[row, at]
            assert drawn[number, place] == expected[row, at]
            words += 1
    assert words == sum(len(text.split()) for text in TEXTS) == int((found.places > 0).sum())
    alone = batch(view, TEXTS[2])
    again = sentences(alone, view, 30)
    assert torch.equal(again.drawn(noise_of(alone, 1, 2))[0, :6], drawn[4, :6])


def test_marks_in_a_row_are_of_one_sentence():
    """Of numbers alone, as a system reads them that learns from flat texts."""
    words, texts = torch.tensor([5, 9, 8, 5, 9, 9, 5, 5]), torch.tensor([0, 0, 0, 0, 0, 1, 1, 2])
    begins = beginnings(words, texts, torch.tensor([8, 9]))
    assert begins.tolist() == [True, False, False, True, False, True, True, True]
    assert beginnings(words[:0], texts[:0], torch.tensor([9])).tolist() == []


def test_no_sentence_depends_on_the_batch(view):
    """Padding is not read."""
    together: Sentences = sentences(batch(view, *TEXTS), view, 30)
    every: Any = words_of(view, together.beside(1))
    for number, text in enumerate(TEXTS):
        alone = sentences(batch(view, text), view, 30)
        mine = [every[at] for at in (together.rows == number).nonzero()[:, 0].tolist()]
        assert words_of(view, alone.beside(1)) == mine
