"""The mechanism of the compact character CNN: bits in place of one-hot vectors."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from architectures.convolutional.char_cnn import CharacterCNN
from architectures.convolutional.compact_char_cnn import CharacterBits, CompactCharacterCNN
from harness.views.characters import ALPHABET, CharacterBatch, Characters
from tests.support.models import small

VIEW = CharacterBits(alphabet=ALPHABET + " ", length=150)


def read(*texts: str, view: Characters = VIEW) -> CharacterBatch:
    return view.collate(view.encode(list(texts)), np.arange(len(texts)))


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 8, 26])
def test_there_are_as_many_bits_as_the_symbols_and_the_strange_character_need(size):
    view = CharacterBits(alphabet="abcdefghijklmnopqrstuvwxyz"[:size], length=None, reverse=False)
    assert view.width == math.ceil(math.log2(size + 1))
    codes = read(view.alphabet + "?", view=view).vectors[0]
    assert codes.shape == (size + 1, view.width) and set(codes.unique().tolist()) == {0.0, 1.0}
    assert len(codes.unique(dim=0)) == size + 1, "two symbols with one code are one symbol"


def test_the_bits_are_those_of_the_symbols_number():
    """b is the second symbol, 10 in binary; the lowest bit comes first. What is not in the alphabet
    is 0, as padding is."""
    view = CharacterBits(alphabet="abcd", length=6, reverse=False)
    wanted = [[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]]
    batch = read("abcd~", view=view)
    assert batch.vectors[0].tolist() == wanted
    assert batch.mask[0].tolist() == [True] * 5 + [False] and batch.lengths.tolist() == [5]


def test_the_text_is_read_as_the_one_hot_view_reads_it():
    """The same characters in the same order: the codes alone differ."""
    one_hot = Characters(alphabet=VIEW.alphabet, length=150)
    texts = ("A good film, is it not?", "no")
    assert torch.equal(read(*texts).ids, read(*texts, view=one_hot).ids)


def test_the_input_and_the_first_layer_shrink_from_the_alphabet_to_its_logarithm():
    compact, one_hot = CompactCharacterCNN.view, CharacterCNN.view
    assert (compact.width, one_hot.width) == (7, 69)
    assert compact.alphabet == ALPHABET + " " and compact.length == one_hot.length == 1014
    model = small(CompactCharacterCNN, VIEW.width, length=150, maps=4, hidden=5, spread=0.1)
    assert model.convolutions[0].weight.shape == (4, 7, 7)


def test_the_network_behind_is_the_character_cnn_with_its_first_filters_over_bits():
    """Filters of the one-hot network that are sums of the bits' filters give the same answers."""
    sizes = {"length": 150, "maps": 4, "hidden": 5, "spread": 0.1}
    model = small(CompactCharacterCNN, VIEW.width, **sizes)
    reference = small(CharacterCNN, len(VIEW.alphabet), **sizes)
    codes = (torch.arange(1, len(VIEW.alphabet) + 1)[:, None] >> torch.arange(VIEW.width)) & 1
    weights = model.state_dict()
    first = weights["convolutions.0.weight"]
    weights["convolutions.0.weight"] = torch.einsum("mbw,sb->msw", first, codes.float())
    reference.load_state_dict(weights)
    batch = read("the plot is thin", "a warm, funny film! " * 8)
    one_hot = batch._replace(vectors=F.one_hot(batch.ids, len(VIEW.alphabet) + 1)[..., 1:].float())
    torch.testing.assert_close(model(batch), reference(one_hot))


def test_two_vowels_that_change_places_are_seen():
    model = small(CompactCharacterCNN, VIEW.width, length=150, maps=4, hidden=5, spread=0.1)
    first, second = model(read("a bad film about a dog " * 6, "o bod film abaut o dag " * 6))
    assert not torch.allclose(first, second)
