"""LSTM layers that say where they end, against the equations, text by text."""

from __future__ import annotations

import warnings

import pytest
import torch

from architectures.blocks.packed_lstm import PackedLSTM
from tests.support.batches import POISON, random_vectors
from tests.support.models import small
from tests.support.oracles import both_ways, states_and_cells
from tests.support.same import assert_same

WIDTH, HIDDEN, LENGTHS = 3, 4, [6, 2, 1, 5]


@pytest.mark.parametrize("layers", [1, 3])
def test_each_direction_ends_where_its_text_does(layers):
    """A decoder that went on from a padded place, from the top layer alone, or from directions
    that are mixed up, would start from other numbers."""
    model = small(PackedLSTM, WIDTH, HIDDEN, layers, True)
    vectors, mask = random_vectors(LENGTHS, 1, WIDTH)
    states, hidden, cell = model(vectors, mask)
    assert states.shape[-1] == model.size == 2 * HIDDEN and hidden.shape == (4, layers, 2 * HIDDEN)
    for row, length in enumerate(LENGTHS):
        expected, last, cells = both_ways(model, vectors[row, :length])
        assert_same(states[row, :length], expected)
        assert_same(hidden[row], torch.stack(last))
        assert_same(cell[row], torch.stack(cells))
        assert not states[row, length:].any()


def test_one_direction_ends_behind_the_last_word():
    model = small(PackedLSTM, WIDTH, HIDDEN, 2)
    vectors, mask = random_vectors(LENGTHS, 1, WIDTH)
    states, hidden, cell = model(vectors, mask)
    for row, length in enumerate(LENGTHS):
        read = vectors[row, :length]
        for number in range(2):
            read, cells = states_and_cells(model, read, number)
            assert_same(hidden[row, number], read[-1])
            assert_same(cell[row, number], cells[-1])
        assert_same(states[row, :length], read)


def test_padding_is_not_read():
    model = small(PackedLSTM, WIDTH, HIDDEN, 2, True)
    vectors, mask = random_vectors(LENGTHS, 1, WIDTH)
    for found, expected in zip(
        model(vectors.masked_fill(~mask[..., None], POISON), mask), model(vectors, mask), strict=True
    ):
        assert_same(found, expected)


def test_one_layer_has_no_dropout_between_layers_and_no_warning_of_it():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [PackedLSTM(WIDTH, HIDDEN, layers, dropout=0.3).dropout for layers in (1, 2)] == [0, 0.3]
