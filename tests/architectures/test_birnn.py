"""The mechanism of the bidirectional RNN: two recurrences with weights of their own, each starting
at a real word."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from architectures.recurrent.birnn import BidirectionalRNN
from harness.problems.classify import text_vector
from tests.support.batches import assert_each_alone, mask_of, random_texts
from tests.support.models import small
from tests.support.oracles import rnn
from tests.support.recurrent import assert_dropout_acts_on_words_and_between_layers

texts = partial(random_texts, (7, 3, 1, 5), 1, 3)
model_of = partial(small, BidirectionalRNN, 3, hidden=4, stretch=None)


@pytest.mark.parametrize("layers", [1, 2])
def test_states_are_both_recurrences_written_out_and_padding_reaches_neither(layers):
    """Large numbers stand at padding: a right-to-left recurrence that began there would carry them
    into every state."""
    model, batch = model_of(layers=layers), texts()
    assert len(model.recurrence.forwards) == layers
    assert_each_alone(model(batch.vectors, batch.mask), partial(written_out, model), batch, states=True)


def written_out(model: BidirectionalRNN, vectors: torch.Tensor) -> torch.Tensor:
    """States (n, size) of an Elman layer in each direction, layer by layer."""
    for forwards, backwards in zip(model.recurrence.forwards, model.recurrence.backwards, strict=True):
        vectors = torch.cat([rnn(forwards, vectors), rnn(backwards, vectors.flip(0)).flip(0)], dim=1)
    return vectors


def test_each_half_of_a_state_reads_its_own_side_of_the_text():
    model, vectors, mask = model_of(), texts().vectors[:1], mask_of([7])
    changed = vectors.clone()
    changed[0, 3] += 1
    moved = (model(changed, mask) - model(vectors, mask))[0].abs() > 1e-6
    assert moved[:, :4].any(1).tolist() == [False] * 3 + [True] * 4
    assert moved[:, 4:].any(1).tolist() == [True] * 4 + [False] * 3


def test_the_directions_share_no_weights_and_have_no_bias():
    """Shared weights would give a palindrome mirrored states; a bias is not part of the
    recurrence."""
    model = model_of()
    assert [p.shape for p in model.parameters()] == [(4, 3), (4, 4)] * 2
    vectors = torch.randn(1, 3, 3)
    palindrome = torch.cat([vectors, vectors.flip(1)], dim=1)
    states = model(palindrome, mask_of([6]))[0]
    assert not torch.allclose(states[:, :4], states[:, 4:].flip(0), atol=1e-2)


@pytest.mark.parametrize("pooling", ["mean", "max", "ends"])
def test_a_texts_vector_pools_its_states(pooling):
    """It is their mean, or the ends of both directions."""
    model, batch = model_of(pooling=pooling), texts()

    def vector(text: torch.Tensor) -> torch.Tensor:
        states = written_out(model, text)
        ends = torch.cat([states[-1, :4], states[0, 4:]])
        return {"mean": states.mean(0), "max": states.amax(0), "ends": ends}[pooling]

    assert_each_alone(text_vector(model, batch), vector, batch)


def test_dropout_acts_on_the_words_and_between_layers():
    """With all dropped the first layer reads zeros, and so does the second when words are whole."""
    assert_dropout_acts_on_words_and_between_layers(model_of(dropout=1.0, layers=2), texts())
