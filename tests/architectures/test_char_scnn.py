"""The mechanism of CharSCNN: words from their characters, the text from its words, twice by a
linear convolution and a maximum."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from architectures.convolutional.char_scnn import CharSCNN
from harness.views.words_and_characters import WordCharacterBatch, WordsAndCharacters
from tests.support.batches import mask_of, poisoned
from tests.support.models import small
from tests.support.oracles import convolution
from tests.support.same import assert_same

TEXTS = [["Good", "film", "x", "indeed", "so"], ["good", "film"], ["a"]]
WIDTH = 4


def model_and_words() -> tuple[CharSCNN, WordCharacterBatch]:
    """A small model, and a batch of the texts in which equal vectors leave words to their
    spelling."""
    view = WordsAndCharacters(min_count=1)
    view.fit(TEXTS)
    model = small(CharSCNN, WIDTH, view=view, character_maps=3, maps=6, hidden=5)
    with torch.no_grad():  # so that tanh is far from its ends
        model.hidden.weight.div_(100)
    words = view.collate(view.encode(TEXTS), np.arange(3))
    return model, words._replace(vectors=poisoned(torch.randn(3, 5, WIDTH), mask_of([5, 2, 1])))


def largest(layer: torch.nn.Conv1d, vectors: list[Tensor]) -> Tensor:
    """The largest value of each map over centred windows, without an activation."""
    side = layer.kernel_size[0] // 2
    return torch.stack(convolution(layer, vectors, left=side, right=side)).amax(0)


def spelt(model: CharSCNN, ids: Tensor) -> Tensor:
    return largest(model.spelling.convolution, list(model.characters.weight[ids]))


def test_a_text_is_two_convolutions_each_with_its_maximum():
    """An activation before a maximum, padding in a maximum, or words without their spelling would
    show here."""
    model, words = model_and_words()
    found = model(words)
    for row, text in enumerate(TEXTS):
        joined = [
            torch.cat([words.vectors[row, t], spelt(model, words.characters[row, t, : len(word)])])
            for t, word in enumerate(text)
        ]
        sentence = largest(model.sentence.convolution, joined)
        expected = torch.tanh(model.hidden.weight @ sentence + model.hidden.bias)
        assert_same(found[row], expected)


def test_doubled_filters_double_a_words_vector():
    """Nothing bends between the convolution and the maximum."""
    model, words = model_and_words()
    characters, mask = model.characters(words.characters[0]), words.character_mask[0]
    before = model.spelling(characters, mask)
    with torch.no_grad():
        model.spelling.convolution.weight.mul_(2)
        model.spelling.convolution.bias.mul_(2)
    torch.testing.assert_close(model.spelling(characters, mask), 2 * before)
    assert (before < 0).any(), "an activation would cut these off"


def test_the_case_of_a_letter_changes_the_text():
    model, words = model_and_words()
    good = words.characters.clone()
    good[0, 0, :4] = words.characters[1, 0, :4]
    assert not torch.equal(words.characters[0, 0, :4], good[0, 0, :4]), "Good and good are spelt alike"
    assert not torch.allclose(model(words._replace(characters=good))[0], model(words)[0], atol=1e-4)


def test_words_longer_than_any_in_training_are_cut():
    view = CharSCNN.reads("text", {})
    view.fit([["a"]])
    assert view.collate(view.encode([["a" * 50]]), np.arange(1)).characters.shape == (1, 1, 30)


def test_its_sizes_are_those_of_movie_reviews():
    model, view = CharSCNN, WordsAndCharacters(min_count=1)
    view.fit(TEXTS)
    made = model(30, view=view)
    assert made.spelling.convolution.weight.shape == (10, 5, 3) and made.characters.embedding_dim == 5
    assert made.sentence.convolution.weight.shape == (300, 40, 5) and made.hidden.weight.shape == (300, 300)
