"""The mechanism of SCQA: one convolutional network over the characters of both texts, cosine,
contrastive loss."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from architectures.siamese.scqa import SCQA
from harness.views.characters import CharacterBatch, Characters
from tests.support.oracles import convolution, cosine
from tests.support.pairs import dense, shipped
from tests.support.same import assert_same

ALPHABET = "abcde"
FIRST = ["abcdeabcb", "a", "ddcba"]
SECOND = ["eabcd", "cabbage bad", "ba"]


def read(*texts: str) -> CharacterBatch:
    view = Characters(ALPHABET, length=None, reverse=False)
    return view.collate(view.encode(list(texts)), np.arange(len(texts)))


def model_of(**options) -> SCQA:
    return shipped("scqa", len(ALPHABET), **{"filters": 4, "window": 3, "output": 6} | options)


def vector(model: SCQA, text: str) -> Tensor:
    """The vector of one text, window by window: zeros before and behind, the maximum around every
    second position, then that of all."""
    characters = [torch.tensor([float(c == letter) for letter in ALPHABET]) for c in text]
    first, second, last = model.tower.first, model.tower.second, model.tower.dense
    maps = [m.clamp(min=0) for m in convolution(first, characters, 1, 1)]
    assert len(maps) == len(text)
    halved = [torch.stack(maps[max(0, i - 1) : i + 2]).amax(0) for i in range(0, len(maps), 2)]
    maps = [m.clamp(min=0) for m in convolution(second, halved, 1, 1)]
    return dense(last, torch.stack(maps).amax(0)).tanh()


def test_a_score_is_the_cosine_of_two_convolved_and_pooled_texts():
    """One stage, another pooling, padding that is pooled, two networks, or a missing activation
    would each show."""
    model = model_of()
    found = model(read(*FIRST), read(*SECOND))
    assert found.shape == (3,) and found.std() > 0.01
    for score, (first, second) in zip(found, zip(FIRST, SECOND, strict=True), strict=True):
        assert_same(score, cosine(vector(model, first), vector(model, second)))


def test_a_text_is_nearest_to_itself():
    torch.testing.assert_close(model_of()(read(*FIRST), read(*FIRST)), torch.ones(3))


def test_the_loss_of_right_and_wrong_pairs():
    """A right pair costs 1 - s; a wrong one what its s has above the margin, and nothing below."""
    scores = torch.tensor([0.75, 0.9, 0.25], requires_grad=True)
    loss = model_of(margin=0.5).rank_loss(scores, torch.tensor([1, 0, 0]), torch.tensor([0, 0, 1]))
    assert loss.item() == pytest.approx((0.25 + 0.4 + 0.0) / 3)
    loss.backward()
    assert scores.grad.tolist() == pytest.approx([-1 / 3, 1 / 3, 0.0])


def test_texts_are_read_from_their_beginning_and_in_full():
    """The view's own defaults read the first 1014 characters backwards."""
    view = SCQA.view
    assert view.read("Abc") == "abc" and len(view.read("a" * 2000)) == 2000
