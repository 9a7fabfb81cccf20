"""The mechanism of the Elman network: h_i = tanh(h_{i-1} U + x_i V), and which states make a text's
vector."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch

from architectures.recurrent.rnn import ElmanRNN
from harness import registry
from tests.support.batches import assert_each_alone, mask_of, random_texts
from tests.support.models import small
from tests.support.oracles import rnn
from tests.support.recurrent import (
    assert_dropout_acts_on_words_and_between_layers,
    assert_vector_comes_from_real_states,
)

texts = partial(random_texts, (6, 4), 1, 3)
model_of = partial(small, ElmanRNN, 3, hidden=4)


def written_out(model: ElmanRNN, vectors: torch.Tensor) -> torch.Tensor:
    """States (n, size) of Elman layers, layer by layer."""
    for layer in model.recurrence.forwards:
        vectors = rnn(layer, vectors)
    return vectors


def weights(model: ElmanRNN) -> tuple[torch.Tensor, torch.Tensor]:
    """V (hidden, width) and U (hidden, hidden) of the first layer."""
    layer = model.recurrence.forwards[0]
    return layer.weight_ih_l0, layer.weight_hh_l0


def test_two_steps_worked_by_hand():
    model = ElmanRNN(width=1, hidden=1).eval()
    v, u = weights(model)
    with torch.no_grad():
        v.fill_(2.0)
        u.fill_(0.5)
    states = model(torch.tensor([[[0.3], [-0.4]]]), mask_of([2]))
    first = math.tanh(0.6)
    torch.testing.assert_close(states.flatten(), torch.tensor([first, math.tanh(0.5 * first - 0.8)]))


def test_the_recurrence_has_two_matrices_and_no_bias():
    """Eq. 4.6 carries none: a zero input from the zero state stays at zero."""
    model = model_of()
    assert [p.shape for p in model.parameters()] == [(4, 3), (4, 4)]
    assert not model(torch.zeros(1, 5, 3), mask_of([5])).any()


def test_every_layer_is_the_recurrence_on_the_states_below():
    model, batch = model_of(layers=2), texts()
    assert len(model.recurrence.forwards) == 2 and not model.recurrence.backwards
    assert_each_alone(model(batch.vectors, batch.mask), partial(written_out, model), batch, states=True)


@pytest.mark.parametrize("pooling", ["last", "mean", "max"])
def test_a_texts_vector_comes_from_its_real_states_alone(pooling):
    assert_vector_comes_from_real_states(model_of(pooling=pooling), written_out, pooling, texts())


def test_its_recipe_clips_gradients():
    """Plain recurrent networks diverge on long texts without it."""
    assert registry.entry("architectures", "rnn").recipe.clip == 5.0


def test_dropout_acts_on_the_words_and_between_layers():
    """With all dropped the first layer reads zeros, and so does the second when words are whole."""
    assert_dropout_acts_on_words_and_between_layers(model_of(dropout=1.0, layers=2), texts())
