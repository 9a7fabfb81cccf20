"""The mechanism of MaLSTM: one LSTM for both texts, exp of minus the L1 distance of the last
states, squared error."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor

from architectures.siamese.ma_lstm import MaLSTM
from tests.support.batches import assert_each_alone, random_texts, texts_of
from tests.support.models import small
from tests.support.pairs import lstm

WIDTH = 3
FIRST, SECOND = (1, 4, 2), (5, 1, 2)

texts = partial(random_texts, width=WIDTH)


model_of = partial(small, MaLSTM, WIDTH, hidden=4, stretch=50.0)  # from a deviation of 0.02


def written_out(model: MaLSTM, first: Tensor, second: Tensor) -> Tensor:
    """The score of one pair, unit by unit of the last states."""
    a, b = (lstm(model.recurrence, text)[-1] for text in (first, second))
    return torch.exp(-sum((x - y).abs() for x, y in zip(a, b, strict=True)))


def test_a_score_is_exp_of_minus_the_summed_distances_of_the_last_states():
    """A mean over units or time, a squared distance, another cell, or the state behind the padding
    would each show."""
    model, first, second = model_of(), texts(FIRST, 1), texts(SECOND, 2)
    assert_each_alone(model(first, second), partial(written_out, model), first, second)


def test_a_text_is_nearest_to_itself_and_order_counts():
    model, text = model_of(), texts((4, 3), 1)
    assert model(text, text).tolist() == [1.0, 1.0]
    straight, turned = texts_of(text.vectors[:1]), texts_of(text.vectors[:1].flip(1))
    assert 0 < model(straight, turned).item() < 0.99


def test_the_loss_is_the_squared_error_to_the_label():
    found = MaLSTM(WIDTH).rank_loss(torch.tensor([0.75, 0.5]), torch.tensor([1, 0]), torch.tensor([0, 0]))
    assert found.item() == pytest.approx((0.0625 + 0.25) / 2)


def test_only_the_forget_gates_begin_with_a_bias():
    biases = dict(MaLSTM(WIDTH, hidden=4, forget_bias=2.5).recurrence.forwards[0].named_parameters())
    total = (biases["bias_ih_l0"] + biases["bias_hh_l0"]).view(4, -1)  # gates: input, forget, cell, output
    assert total.tolist() == [[0.0] * 4, [2.5] * 4, [0.0] * 4, [0.0] * 4]


def test_weights_start_small():
    weights = [weights for weights in MaLSTM(100).recurrence.parameters() if weights.dim() > 1]
    assert len(weights) == 2
    for matrix in weights:
        assert 0.019 < matrix.std() < 0.021 and abs(matrix.mean()) < 0.001


def test_at_full_size_similarities_begin_neither_at_zero_nor_at_one():
    """exp(-50) has no gradient: with states far apart at first, nothing would ever be learned."""
    torch.manual_seed(0)
    first, second = texts((30, 8, 20), 1, width=100), texts((25, 40, 3), 2, width=100)
    scores = MaLSTM(100)(first._replace(vectors=first.vectors * 0.15), second._replace(vectors=second.vectors * 0.15))
    assert ((scores > 0.05) & (scores < 0.95)).all(), scores
