"""Character convolution: the maximum over the windows of each word by brute force, and how its
vectors start."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from architectures.blocks.characters import CharacterConvolution
from tests.support.same import assert_same

WORDS = [[2, 3, 4, 5, 2], [3], [4, 4], [5, 2, 3]]


def padded(words: list[list[int]]) -> tuple[Tensor, Tensor]:
    """Characters (N, C) and their mask."""
    longest = max(map(len, words))
    mask = torch.tensor([[place < len(word) for place in range(longest)] for word in words])
    return torch.tensor([word + [0] * (longest - len(word)) for word in words]), mask


def by_hand(spelling: CharacterConvolution, ids: list[int], activation: Callable[[Tensor], Tensor]) -> Tensor:
    """The largest activation of each filter over all windows that hold a character of the word."""
    weight, bias = spelling.convolution.weight, spelling.convolution.bias
    window = weight.shape[-1]
    zeros = [torch.zeros(spelling.vectors.embedding_dim)] * (window - 1)
    line = [*zeros, *(spelling.vectors.weight[id] for id in ids), *zeros]
    windows = [torch.stack(line[start : start + window], dim=1) for start in range(len(ids) + window - 1)]
    return torch.stack([activation((weight * window).sum((1, 2)) + bias) for window in windows]).amax(0)


@pytest.mark.parametrize("window", [3, 5])
@pytest.mark.parametrize("activation", [torch.tanh, torch.relu])
def test_a_words_vector_is_the_maximum_over_its_own_windows(window, activation):
    """Padding that takes part in the maximum would tie a word's vector to the longest word of its
    batch."""
    torch.manual_seed(0)
    spelling = CharacterConvolution(alphabet=7, size=6, filters=7, window=window, dropout=0.0, activation=activation)
    with torch.no_grad():  # beside these filters, a window of padding alone would win; beside the first, it loses
        spelling.convolution.weight *= 3
        spelling.convolution.bias -= 1
        spelling.convolution.bias[0] += 4
    characters, mask = padded(WORDS)
    found = spelling(characters, mask)
    for row, word in enumerate(WORDS):
        assert_same(found[row], by_hand(spelling, word, activation))
    together = spelling(characters.view(2, 2, -1), mask.view(2, 2, -1))
    assert_same(together, found.view(2, 2, -1))


def test_a_padding_word_is_finite():
    """A word without characters stands behind short texts; a maximum over nothing would spread NaN
    through the gradients."""
    spelling = CharacterConvolution(alphabet=7, size=6, filters=7, window=5, dropout=0.0)
    found = spelling(torch.zeros(1, 2, 3, dtype=torch.long), torch.zeros(1, 2, 3, dtype=torch.bool))
    found.sum().backward()
    assert found.shape == (1, 2, 7) and found.isfinite().all() and spelling.convolution.bias.grad.isfinite().all()


def test_character_vectors_start_uniform_within_the_papers_bound_and_padding_is_zero():
    torch.manual_seed(0)
    spelling = CharacterConvolution(alphabet=500, size=30, filters=30, window=3, dropout=0.5)
    weight, limit = spelling.vectors.weight, math.sqrt(3 / 30)
    assert not weight[0].any()
    assert limit * 0.99 < weight.abs().max() <= limit
    assert abs(weight[1:].std().item() - limit / math.sqrt(3)) < 0.01  # of a uniform distribution


def test_the_vectors_of_characters_are_learnt_and_padding_stays_zero():
    """Random vectors that nothing moves would tell characters apart, and no more of them."""
    spelling = CharacterConvolution(alphabet=7, size=6, filters=7, window=3, dropout=0.0)
    spelling(*padded(WORDS)).sum().backward()
    moved = spelling.vectors.weight.grad.any(1)
    assert moved.tolist() == [False, False, True, True, True, True, False]


def test_dropout_acts_on_the_character_vectors():
    """With all of them dropped the filters read zeros, and their biases are left."""
    spelling = CharacterConvolution(alphabet=7, size=6, filters=7, window=3, dropout=1.0).train()
    expected = torch.tanh(spelling.convolution.bias).expand(len(WORDS), 7)
    assert_same(spelling(*padded(WORDS)), expected)
    assert not torch.allclose(spelling.eval()(*padded(WORDS)), expected)
