"""Assertions that every recurrent encoder of texts must hold."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

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
