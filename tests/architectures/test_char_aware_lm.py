"""The mechanism of the character-aware language model: words that are spelt before an LSTM reads
them."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from architectures.hybrid.char_aware_lm import CharacterAwareLanguageModel, SpeltStream, spellings
from harness import registry
from harness.running.grid import hyperparameters
from tests.support.foretelling import in_stretches, words
from tests.support.models import small
from tests.support.oracles import convolution, lstm
from tests.support.same import assert_same

SYMBOLS, HIDDEN = 7, 4


def view_of(*known: str) -> SpeltStream:
    made = SpeltStream()
    made.fit([list(known)])
    return made


VIEW = view_of("abc", "a", "bca")
"""Rows of a table: 2 is "a", 3 "abc", 4 "bca"."""

model_of = partial(
    small, CharacterAwareLanguageModel, VIEW, SYMBOLS, characters=3, widths=(1, 3), filters=2, hidden=HIDDEN
)


def test_a_row_of_the_vocabulary_is_spelt_between_marks():
    """Characters come behind padding, the two marks and the unknown word's: a 4, b 5, c 6."""
    count, spelt = spellings(VIEW.vocabulary, 2)
    assert count == 7
    assert spelt.tolist() == [[1, 2, 0, 0, 0], [1, 3, 2, 0, 0], [1, 4, 2, 0, 0], [1, 4, 5, 6, 2], [1, 5, 6, 4, 2]]
    assert spellings(VIEW.vocabulary, 9)[1].shape == (5, 9)
    assert spellings(view_of("zyxwvutsrq").vocabulary, 2)[1][2].tolist() == [1, *range(13, 3, -1), 2], "in their order"


def vector(model: Any, row: int) -> Tensor:
    """The vector of one row of the vocabulary, loop by loop."""
    spelt = spellings(VIEW.vocabulary, 3)[1][row]
    characters = [
        model.characters.weight[number] if number else torch.zeros_like(model.characters.weight[0]) for number in spelt
    ]
    maxima = [
        torch.stack([torch.tanh(window) for window in convolution(layer, characters)]).amax(0)
        for layer in model.convolutions
    ]
    y = torch.cat(maxima)
    for transform, gate in zip(model.highway.transforms, model.highway.gates, strict=True):
        t = torch.sigmoid(gate.weight @ y + gate.bias)
        y = t * torch.relu(transform.weight @ y + transform.bias) + (1 - t) * y
    return y


@pytest.mark.parametrize("highway", [1, 2])
def test_a_words_vector_is_the_maximum_over_its_windows_behind_a_highway(highway):
    model = model_of(highway=highway)
    ids = torch.tensor([[0, 1, 2], [4, 3, 2]])
    found = model.read(ids)
    for row, column in ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1)):
        assert_same(found[row, column], vector(model, int(ids[row, column])))
    assert not torch.allclose(found[1, 0], found[1, 1]), "the order of the characters counts"


@pytest.mark.parametrize("ends", [[6], [1, 4, 6]])
def test_an_lstm_of_two_layers_reads_the_vectors_and_a_softmax_its_states(ends):
    model, ids = model_of(layers=2), torch.tensor([[0, 2, 3, 1, 4, 4], [0, 4, 2, 3, 3, 1]])
    states, _ = in_stretches(model, words(torch.zeros(2, 6, 0), ids), ends)
    for row, text in enumerate(ids):
        expected = torch.stack([vector(model, int(word)) for word in text])
        for layer in range(2):
            expected = lstm(model.recurrence, expected, layer)
        assert_same(model.scores(states)[row], expected @ model.output.weight.T + model.output.bias)


def test_dropout_leaves_the_vectors_of_the_words_whole():
    """It acts between the layers and before the softmax; the first layer reads all of a word."""
    model, ids = model_of(layers=2, dropout=1.0).train(), torch.tensor([[0, 2, 3]])
    states, (state, _) = model(words(torch.zeros(1, 3, 0), ids), model.start(1))
    expected = lstm(model.recurrence, torch.stack([vector(model, int(word)) for word in ids[0]]))
    assert_same(state[0, 0], expected[-1])
    assert not states.any()
    assert_same(state[0, 1], lstm(model.recurrence, torch.zeros(3, HIDDEN), 1)[-1])


def test_gates_begin_at_minus_two_and_all_else_within_the_spread():
    model = CharacterAwareLanguageModel(VIEW, SYMBOLS, hidden=HIDDEN, highway=2)
    for name, parameter in model.named_parameters():
        if name.startswith("highway.gates") and name.endswith("bias"):
            assert (parameter == -2).all()
        else:
            assert 0 < parameter.abs().max() <= 0.05, name
    assert not model.characters.weight[0].any() and model.characters.padding_idx == 0


def test_each_id_has_the_sizes_of_its_name():
    """Small: 25 w maps of widths 1 to 6; large: 50 w maps of widths 1 to 7, 200 at most."""
    sizes = {
        "char_aware_lm": ([25, 50, 75, 100, 125, 150], 1, 300),
        "char_aware_lm_large": ([50, 100, 150, 200, 200, 200, 200], 2, 650),
    }
    for id, (maps, highway, hidden) in sizes.items():
        entry = registry.entry("architectures", id)
        model = registry.load(entry)(VIEW, SYMBOLS, **hyperparameters(entry))
        assert [layer.out_channels for layer in model.convolutions] == maps
        assert [layer.kernel_size for layer in model.convolutions] == [(w,) for w in range(1, len(maps) + 1)]
        assert len(model.highway.gates) == highway
        assert (model.recurrence.input_size, model.recurrence.hidden_size) == (sum(maps), hidden)
        assert isinstance(model.recurrence, nn.LSTM)


def test_there_are_no_vectors_of_words():
    """More words make a larger softmax, and nothing else."""
    more = view_of("abc", "a", "bca", "ab", "cab", "bb")
    counts = [
        sum(p.numel() for p in CharacterAwareLanguageModel(v, SYMBOLS, hidden=HIDDEN).parameters())
        for v in (VIEW, more)
    ]
    assert counts[0] == counts[1] and not SpeltStream.embeds
