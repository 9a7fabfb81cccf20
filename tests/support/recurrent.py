"""Assertions that every recurrent encoder of texts must hold, and a cell written out."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from architectures.tagging.lstm_crf_char import CoupledLSTM
from harness.problems.classify import text_vector
from harness.views.words import WordBatch
from tests.support.batches import assert_each_alone


def assert_dropout_acts_on_words_and_between_layers(model: nn.Module, batch: WordBatch) -> None:
    """With all dropped the first of the two layers reads zeros, and so does the second when words
    are whole; a model that answers drops nothing."""
    model.train()
    read: list[Tensor] = []
    for layer in model.recurrence.forwards:
        layer.register_forward_pre_hook(lambda layer, inputs: read.append(inputs[0]))
    model(batch.vectors, batch.mask)
    model.dropout.p = 0.0
    model(batch.vectors, batch.mask)
    model.eval()(batch.vectors, batch.mask)
    assert [inputs.any().item() for inputs in read] == [False, False, True, False, True, True]


def assert_vector_comes_from_real_states(
    model: nn.Module, states_of: Callable[[nn.Module, Tensor], Tensor], pooling: str, batch: WordBatch
) -> None:
    """A text's vector is the last, the mean or the maximum of its states alone, which ``states_of``
    gives for a text without padding."""

    def vector(text: Tensor) -> Tensor:
        states = states_of(model, text)
        return {"last": states[-1], "mean": states.mean(0), "max": states.amax(0)}[pooling]

    assert_each_alone(text_vector(model, batch), vector, batch)


def coupled(layer: CoupledLSTM, vectors: Tensor) -> Tensor:
    """States (n, hidden) of the authors' cell, one vector after another."""
    (w_i, w_c, w_o), (u_i, u_c, u_o) = layer.from_input.weight.chunk(3), layer.from_state.weight.chunk(3)
    b_i, b_c, b_o = layer.from_input.bias.chunk(3)
    v_i, v_o = layer.input_peephole.weight, layer.output_peephole.weight
    h, c, states = layer.first_state, layer.first_cell, []
    for x in vectors:
        i = torch.sigmoid(w_i @ x + u_i @ h + v_i @ c + b_i)
        c = (1 - i) * c + i * torch.tanh(w_c @ x + u_c @ h + b_c)
        h = torch.sigmoid(w_o @ x + u_o @ h + v_o @ c + b_o) * torch.tanh(c)
        states.append(h)
    return torch.stack(states)
