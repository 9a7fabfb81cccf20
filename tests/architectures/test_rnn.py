"""The mechanism of the Elman network: h_i = tanh(h_{i-1} U + x_i V), and which states make a text's
vector."""

from __future__ import annotations

import math

import pytest
import torch

from architectures.recurrent.rnn import ElmanRNN
from harness import registry
from harness.problems.classify import text_vector
from harness.views.words import WordBatch


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
    states = model(torch.tensor([[[0.3], [-0.4]]]), torch.ones(1, 2, dtype=torch.bool))
    first = math.tanh(0.6)
    torch.testing.assert_close(states.flatten(), torch.tensor([first, math.tanh(0.5 * first - 0.8)]))


def test_the_recurrence_has_two_matrices_and_no_bias():
    """Eq. 4.6 carries none: a zero input from the zero state stays at zero."""
    model = ElmanRNN(width=3, hidden=4).eval()
    assert [p.shape for p in model.parameters()] == [(4, 3), (4, 4)]
    assert not model(torch.zeros(1, 5, 3), torch.ones(1, 5, dtype=torch.bool)).any()


def test_every_layer_is_the_recurrence_on_the_states_below():
    torch.manual_seed(0)
    model = ElmanRNN(width=3, hidden=4, layers=2).eval()
    vectors, mask = torch.randn(2, 6, 3), torch.arange(6) < torch.tensor([[6], [4]])
    expected = vectors
    for layer in model.recurrence.forwards:
        state, states = torch.zeros(2, 4), []
        for x in expected.unbind(1):
            state = torch.tanh(state @ layer.weight_hh_l0.T + x @ layer.weight_ih_l0.T)
            states.append(state)
        expected = torch.stack(states, dim=1)
    torch.testing.assert_close(model(vectors, mask)[mask], expected[mask])


@pytest.mark.parametrize("pooling", ["last", "mean", "max"])
def test_a_texts_vector_comes_from_its_real_states_alone(pooling):
    torch.manual_seed(0)
    model = ElmanRNN(width=3, hidden=4, pooling=pooling).eval()
    vectors, lengths = torch.randn(2, 6, 3), torch.tensor([6, 4])
    mask = torch.arange(6) < lengths[:, None]
    pooled = text_vector(model, WordBatch(mask.long(), mask, lengths, vectors))
    short = model(vectors[1:, :4], mask[1:, :4])[0]
    torch.testing.assert_close(pooled[1], {"last": short[-1], "mean": short.mean(0), "max": short.amax(0)}[pooling])


def test_its_recipe_clips_gradients():
    """Plain recurrent networks diverge on long texts without it."""
    assert registry.entry("architectures", "rnn").recipe.clip == 5.0
