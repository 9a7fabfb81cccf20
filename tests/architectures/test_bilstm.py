"""The mechanism of the bidirectional LSTM: both directions start at a real word, whatever the
padding."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from architectures.blocks.recurrent import reverse
from architectures.recurrent.bilstm import BidirectionalLSTM
from harness.problems.classify import text_vector
from tests.support.batches import assert_each_alone, mask_of, random_texts
from tests.support.models import small
from tests.support.oracles import recurrent

texts = partial(random_texts, (7, 3, 1, 5), 1, 3)
model_of = partial(small, BidirectionalLSTM, 3, hidden=4)


@pytest.mark.parametrize("layers", [1, 2])
def test_states_are_both_recurrences_written_out_without_padding(layers):
    """Large numbers at padding: a right-to-left recurrence that began there would carry them into
    every state."""
    model, batch = model_of(layers=layers), texts()
    assert_each_alone(model(batch.vectors, batch.mask), partial(recurrent, model.recurrence), batch, states=True)


def test_each_half_of_a_state_reads_its_own_side_of_the_text():
    model, vectors, mask = model_of(), texts().vectors[:1], mask_of([7])
    changed = vectors.clone()
    changed[0, 3] += 1
    moved = (model(changed, mask) - model(vectors, mask))[0].abs() > 1e-6
    assert moved[:, :4].any(1).tolist() == [False] * 3 + [True] * 4
    assert moved[:, 4:].any(1).tolist() == [True] * 4 + [False] * 3


def test_reversal_turns_the_real_positions_round_and_is_its_own_inverse():
    vectors = torch.tensor([[[1.0], [2.0], [3.0], [9.0]], [[4.0], [9.0], [8.0], [7.0]]])
    mask = torch.tensor([[True, True, True, False], [True, False, False, False]])
    turned = reverse(vectors, mask)
    assert turned.squeeze(-1).tolist() == [[3.0, 2.0, 1.0, 9.0], [4.0, 9.0, 8.0, 7.0]]
    assert torch.equal(reverse(turned, mask), vectors)


def test_a_texts_vector_is_the_mean_of_its_states():
    model, batch = model_of(), texts()
    assert_each_alone(text_vector(model, batch), lambda text: recurrent(model.recurrence, text).mean(0), batch)
