"""The mechanism of the LSTM: three gates round a memory cell, read from left to right."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from architectures.recurrent.lstm import LSTM
from tests.support.batches import assert_each_alone, mask_of, random_texts
from tests.support.models import small
from tests.support.oracles import lstm
from tests.support.recurrent import (
    assert_dropout_acts_on_words_and_between_layers,
    assert_vector_comes_from_real_states,
)

INPUT, FORGET, CANDIDATE, OUTPUT = range(4)
"""Order of the gates in PyTorch's stacked weights."""


def written_out(model: LSTM, vectors: torch.Tensor) -> torch.Tensor:
    """States (n, size) of LSTM layers, layer by layer."""
    for layer in model.recurrence.forwards:
        vectors = lstm(layer, vectors)
    return vectors


def test_an_open_forget_gate_and_a_closed_input_gate_copy_the_cell_for_ever():
    """The word at the start writes the cell; two hundred others, shut out by the input gate, leave
    it as it is."""
    model = LSTM(width=1, hidden=1).eval()
    layer = model.recurrence.forwards[0]
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.zero_()
        layer.weight_ih_l0[INPUT], layer.bias_ih_l0[INPUT] = 100.0, -50.0
        layer.bias_ih_l0[FORGET], layer.bias_ih_l0[OUTPUT] = 50.0, 50.0
        layer.weight_ih_l0[CANDIDATE], layer.bias_ih_l0[CANDIDATE] = 0.25, 0.25
    vectors = torch.zeros(1, 201, 1)
    vectors[0, 0] = 1.0
    states = model(vectors, mask_of([201])).flatten()
    torch.testing.assert_close(states, torch.tensor(0.5).tanh().tanh().expand(201))


texts = partial(random_texts, (6, 4), 1, 3)
model_of = partial(small, LSTM, 3, hidden=4)


@pytest.mark.parametrize("layers", [1, 2])
def test_states_follow_the_equations_and_each_reads_the_past_alone(layers):
    """Another cell, a layer less, or a state that reads ahead is another architecture."""
    model, batch = model_of(layers=layers), texts()
    assert len(model.recurrence.forwards) == layers and not model.recurrence.backwards
    states = model(batch.vectors, batch.mask)
    assert_each_alone(states, partial(written_out, model), batch, states=True)
    changed = batch.vectors.clone()
    changed[:, 3] += 1
    moved = (model(changed, batch.mask) - states).abs().sum(-1)[0] > 1e-6
    assert moved.tolist() == [False] * 3 + [True] * 3


@pytest.mark.parametrize("pooling", ["last", "mean", "max"])
def test_a_texts_vector_comes_from_its_real_states_alone(pooling):
    """It is the last one unless told otherwise."""
    assert_vector_comes_from_real_states(model_of(pooling=pooling), written_out, pooling, texts())


def test_dropout_acts_on_the_words_and_between_layers():
    """With all dropped the first layer reads zeros, and so does the second when words are whole."""
    assert_dropout_acts_on_words_and_between_layers(model_of(dropout=1.0, layers=2), texts())
