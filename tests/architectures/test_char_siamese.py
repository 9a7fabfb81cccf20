"""The mechanism of the siamese character network: a stack of BiLSTMs, mean over time, dense layer,
cosine, contrastive loss with a margin."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from architectures.siamese.char_siamese import CharSiamese
from harness.views.characters import CharacterBatch, Characters
from tests.support.oracles import cosine, recurrent
from tests.support.pairs import dense, inputs_of, shipped
from tests.support.same import assert_same

ALPHABET = "abcde"
FIRST = ["abcdeab", "a", "ddcb"]
SECOND = ["eabcd", "cabbage", "ba"]


def read(*texts: str) -> CharacterBatch:
    view = Characters(ALPHABET, length=None, reverse=False)
    return view.collate(view.encode(list(texts)), np.arange(len(texts)))


def model_of(**options) -> CharSiamese:
    return shipped("char_siamese", len(ALPHABET), **{"hidden": 3, "layers": 2, "output": 4} | options)


def vector(model: CharSiamese, text: str) -> Tensor:
    """The vector of one string, state by state; characters outside the alphabet are zeros."""
    characters = [torch.tensor([float(c == letter) for letter in ALPHABET]) for c in text]
    states = recurrent(model.stack, characters)
    return dense(model.dense, sum(states) / len(text))


def test_a_score_is_the_cosine_of_two_strings_written_out():
    """Another cell or pooling, one direction, padding in the mean, two networks or an activation
    above the dense layer would each show."""
    model = model_of()
    found = model(read(*FIRST), read(*SECOND))
    assert found.shape == (3,) and found.std() > 0.01
    for score, (first, second) in zip(found, zip(FIRST, SECOND, strict=True), strict=True):
        assert_same(score, cosine(vector(model, first), vector(model, second)))


def test_a_string_is_nearest_to_itself_and_order_counts():
    model = model_of()
    torch.testing.assert_close(model(read("abcd"), read("abcd")), torch.ones(1))
    assert model(read("abcd"), read("dcba")).item() < 0.999


def test_the_stack_has_four_layers_in_both_directions_by_default():
    stack = shipped("char_siamese", 5).stack
    assert len(stack.forwards) == len(stack.backwards) == 4


def test_the_loss_of_right_and_wrong_pairs():
    """A wrong pair costs E^2 above the margin and nothing below, which is what the paper means; its
    formula has it the other way round. Squares without the quarter, or a hinge, would show."""
    scores = torch.tensor([0.5, 0.8, 0.4, -0.9], requires_grad=True)
    loss = model_of(margin=0.5).rank_loss(scores, torch.tensor([1, 0, 0, 0]), torch.tensor([0, 0, 1, 1]))
    assert loss.item() == pytest.approx((0.25 / 4 + 0.64) / 4)
    loss.backward()
    assert scores.grad.tolist() == pytest.approx([-0.25 / 4, 1.6 / 4, 0.0, 0.0])


def test_dropout_stands_between_the_layers_alone():
    model = model_of(hidden=40, layers=3, dropout=0.25).train()
    reads = inputs_of(*model.stack.forwards, model.dense)
    text = read(*["abcdeabcde"] * 20)
    model(text, text)
    gives = [(tensor == 0).float().mean().item() for tensor in (torch.cat(seen) for seen in reads)]
    assert gives[0] == pytest.approx(0.8) and gives[3] == 0
    assert 0.2 < gives[1] < 0.3 and 0.2 < gives[2] < 0.3


def test_nothing_is_dropped_in_evaluation():
    one, other = (model_of(dropout=rate)(read(*FIRST), read(*SECOND)) for rate in (0.0, 0.5))
    torch.testing.assert_close(one, other)


def test_strings_are_read_from_their_beginning_and_in_full():
    """The view's own defaults read the first 1014 characters backwards."""
    view = CharSiamese.view
    assert view.read("Abc") == "abc" and len(view.read("a" * 2000)) == 2000
