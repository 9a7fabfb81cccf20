"""The mechanism of the GRU: one gate that both writes and forgets, one that hides the past from the
candidate, no memory cell."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch

from architectures.recurrent.gru import GRU
from tests.support.batches import assert_each_alone, mask_of, random_texts
from tests.support.models import small
from tests.support.oracles import gru
from tests.support.recurrent import (
    assert_dropout_acts_on_words_and_between_layers,
    assert_vector_comes_from_real_states,
)
from tests.support.same import assert_same

RESET, KEEP, CANDIDATE = range(3)
"""Order of the gates in PyTorch's stacked weights; its update gate says what to keep: it is the
paper's 1 - u."""


texts = partial(random_texts, (6, 4), 1, 3)
model_of = partial(small, GRU, 3, hidden=4)


def written_out(model: GRU, vectors: torch.Tensor) -> torch.Tensor:
    """States (n, size) of GRU layers, layer by layer."""
    for layer in model.recurrence.forwards:
        vectors = gru(layer, vectors)
    return vectors


def bias(model: GRU, gate: int, value: float) -> None:
    """Hold a gate open (a large value) or shut (a large negative one)."""
    layer, size = model.recurrence.forwards[0], model.size
    with torch.no_grad():
        layer.bias_ih_l0[gate * size : (gate + 1) * size] = value


@pytest.mark.parametrize("layers", [1, 2])
def test_states_follow_the_equations_at_every_real_word(layers):
    """Eq. 4.26-4.30, but for the candidate's reset, which acts behind the matrix."""
    model, batch = model_of(layers=layers), texts()
    assert len(model.recurrence.forwards) == layers and not model.recurrence.backwards
    assert_each_alone(model(batch.vectors, batch.mask), partial(written_out, model), batch, states=True)


def test_two_steps_of_one_unit_by_the_papers_own_equations():
    """Of one unit without that bias, resetting before or behind the matrix is one thing: (r h) U =
    r (h U)."""
    model = GRU(width=1, hidden=1).eval()
    v, u, b = [0.5, -1.0, 2.0], [1.5, 0.7, -0.8], [0.1, 0.3, -0.2]
    layer = model.recurrence.forwards[0]
    with torch.no_grad():
        for parameter, values in (
            (layer.weight_ih_l0, v),
            (layer.weight_hh_l0, u),
            (layer.bias_ih_l0, b),
            (layer.bias_hh_l0, [0.0] * 3),
        ):
            parameter.copy_(torch.tensor(values).view_as(parameter))

    def logistic(z: float) -> float:
        return 1 / (1 + math.exp(-z))

    h, expected = 0.0, []
    for x in (0.6, -0.9):
        r = logistic(h * u[0] + x * v[0] + b[0])
        update = logistic(-(h * u[1] + x * v[1] + b[1]))
        candidate = math.tanh((r * h) * u[2] + x * v[2] + b[2])
        h = update * candidate + (1 - update) * h
        expected.append(h)
    states = model(torch.tensor([[[0.6], [-0.9]]]), mask_of([2]))
    torch.testing.assert_close(states.flatten(), torch.tensor(expected))


def test_a_shut_update_gate_copies_the_state_for_ever():
    model = model_of()
    layer = model.recurrence.forwards[0]
    with torch.no_grad():  # the update gate, held shut by its bias, is opened by a first word that no other looks like
        layer.weight_ih_l0[4:8] = torch.tensor([-1000.0, 0.0, 0.0])
        layer.weight_hh_l0[4:8] = 0.0
    bias(model, KEEP, 100.0)
    vectors = torch.randn(1, 200, 3)
    vectors[..., 0] = 0.0
    vectors[0, 0, 0] = 1.0
    states = model(vectors, mask_of([200]))[0]
    assert states[0].abs().min() > 0.01
    assert_same(states, states[:1].expand(200, 4))


@pytest.mark.parametrize(("reset", "reads_the_past"), [(-100.0, False), (100.0, True)])
def test_a_shut_reset_gate_hides_the_past_from_the_candidate(reset, reads_the_past):
    """With the update gate open, the state is the candidate: that of the last word, whatever stood
    before, if the past is hidden."""
    model = model_of()
    bias(model, KEEP, -100.0)
    bias(model, RESET, reset)
    vectors, mask = torch.randn(2, 5, 3), mask_of([5, 5])
    vectors[1, 4] = vectors[0, 4]
    last = model(vectors, mask)[:, -1]
    assert torch.allclose(last[0], last[1], atol=1e-5) != reads_the_past


@pytest.mark.parametrize("pooling", ["last", "mean", "max"])
def test_a_texts_vector_comes_from_its_real_states_alone(pooling):
    assert_vector_comes_from_real_states(model_of(pooling=pooling), written_out, pooling, texts())


def test_dropout_acts_on_the_words_and_between_layers():
    """With all dropped the first layer reads zeros, and so does the second when words are whole."""
    assert_dropout_acts_on_words_and_between_layers(model_of(dropout=1.0, layers=2), texts())
