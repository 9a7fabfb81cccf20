"""The mechanism of the LSTM sentence encoders for SNLI: projected words, last states of an LSTM,
three tanh layers on both."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor

from tests.support.batches import assert_each_alone, random_texts
from tests.support.pairs import dense, inputs_of, lstm, share_of_zeros, shipped

WIDTH = 5
FIRST, SECOND = (4, 1, 6), (2, 5, 3)
"""Words of each text of three pairs."""

texts = partial(random_texts, width=WIDTH)
model_of = partial(shipped, "snli_lstm", WIDTH, hidden=4, layer=6)


def sentence(tower: torch.nn.Module, text: Tensor) -> Tensor:
    """The last state over one text's projected words."""
    return lstm(tower.recurrence, [dense(tower.project, word).tanh() for word in text])[-1]


def written_out(model: torch.nn.Module, first: Tensor, second: Tensor) -> Tensor:
    """The vector of one pair."""
    vector = torch.cat([sentence(model.premise, first), sentence(model.hypothesis, second)])
    layers = [layer for layer in model.layers if isinstance(layer, torch.nn.Linear)]
    assert len(layers) == 3
    for layer in layers:
        vector = dense(layer, vector).tanh()
    return vector


@pytest.mark.parametrize("shared", [True, False], ids=["one encoder", "two encoders"])
def test_a_batch_of_pairs_is_each_pair_written_out(shared):
    """A missing projection, a state behind the padding, another cell, the texts in the other order
    or a layer too few would each show."""
    model, first, second = model_of(shared=shared), texts(FIRST, 1), texts(SECOND, 2)
    result = model(first, second)
    assert result.shape == (3, 6) and model.size == 6
    assert_each_alone(result, partial(written_out, model), first, second, rtol=1e-4, atol=1e-5)


def test_one_encoder_reads_both_sentences_unless_two_are_asked_for():
    one, two = model_of(), model_of(shared=False)
    assert one.premise is one.hypothesis
    assert not {id(p) for p in two.premise.parameters()} & {id(p) for p in two.hypothesis.parameters()}


def test_dropout_acts_on_what_the_lstm_reads_and_on_the_sentences_vectors():
    """A quarter is set to zero; without it, or with dropout within the tanh layers too, the system
    is not the one of the paper."""
    model = model_of(hidden=60, layer=60, dropout=0.25).train()
    (recurrence,) = model.premise.recurrence.forwards
    reads = inputs_of(model.premise.project, recurrence, *model.layers[::2])
    model(random_texts((9,) * 20, 1, WIDTH), random_texts((9,) * 20, 2, WIDTH))
    assert share_of_zeros(reads[0]) == 0
    assert 0.2 < share_of_zeros(reads[1]) < 0.3
    assert 0.2 < share_of_zeros(reads[2]) < 0.3
    assert share_of_zeros(reads[3]) == share_of_zeros(reads[4]) == 0


def test_nothing_is_dropped_in_evaluation():
    model, first, second = model_of(dropout=0.5), texts(FIRST, 1), texts(SECOND, 2)
    torch.testing.assert_close(model(first, second), model_of(dropout=0.0)(first, second))


def test_tanh_layers_hand_on_as_much_as_they_read():
    """With weights made for ReLU three of them leave a hundredth of the differences between pairs,
    and the system stands at chance for hundreds of passes."""
    layers = [m for m in shipped("snli_lstm", 300, stretch=None).modules() if isinstance(m, torch.nn.Linear)]
    assert len(layers) == 4 and not any(layer.bias.any() for layer in layers)
    for layer in layers:
        assert layer.weight.std().item() == pytest.approx((2 / sum(layer.weight.shape)) ** 0.5, rel=0.05)
