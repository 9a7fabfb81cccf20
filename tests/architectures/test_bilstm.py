"""The mechanism of the bidirectional LSTM: both directions start at a real word, whatever the
padding."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from architectures.recurrent.bilstm import BidirectionalLSTM
from harness.problems.classify import text_vector
from tests.support.batches import assert_each_alone, mask_of, random_texts
from tests.support.models import small
from tests.support.oracles import lstm
from tests.support.recurrent import assert_dropout_acts_on_words_and_between_layers

texts = partial(random_texts, (7, 3, 1, 5), 1, 3)
model_of = partial(small, BidirectionalLSTM, 3, hidden=4)


@pytest.mark.parametrize("layers", [1, 2])
def test_states_are_both_recurrences_written_out_without_padding(layers):
    """Large numbers at padding: a right-to-left recurrence that began there would carry them into
    every state."""
    model, batch = model_of(layers=layers), texts()
    assert len(model.recurrence.forwards) == layers
    assert_each_alone(model(batch.vectors, batch.mask), partial(written_out, model), batch, states=True)


def written_out(model: BidirectionalLSTM, vectors: torch.Tensor) -> torch.Tensor:
    """States (n, size) of an LSTM in each direction, layer by layer."""
    for forwards, backwards in zip(model.recurrence.forwards, model.recurrence.backwards, strict=True):
        vectors = torch.cat([lstm(forwards, vectors), lstm(backwards, vectors.flip(0)).flip(0)], dim=1)
    return vectors


def test_each_half_of_a_state_reads_its_own_side_of_the_text():
    model, vectors, mask = model_of(), texts().vectors[:1], mask_of([7])
    changed = vectors.clone()
    changed[0, 3] += 1
    moved = (model(changed, mask) - model(vectors, mask))[0].abs() > 1e-6
    assert moved[:, :4].any(1).tolist() == [False] * 3 + [True] * 4
    assert moved[:, 4:].any(1).tolist() == [True] * 4 + [False] * 3


def test_a_texts_vector_is_the_mean_of_its_states():
    model, batch = model_of(), texts()
    assert_each_alone(text_vector(model, batch), lambda text: written_out(model, text).mean(0), batch)


def test_dropout_acts_on_the_words_and_between_layers():
    """With all dropped the first layer reads zeros, and so does the second when words are whole."""
    assert_dropout_acts_on_words_and_between_layers(model_of(dropout=1.0, layers=2), texts())
