"""Two-way attentive pooling against loops over words."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from architectures.blocks.attentive_pooling import AttentivePooling

SIZE = 4
FIRST, SECOND = (3, 1, 5), (2, 4, 1)
"""Words of each text of three pairs."""


def states(lengths: tuple[int, ...], seed: int) -> tuple[Tensor, Tensor]:
    """Random states, with large numbers at padding that must not count, and their mask."""
    generator = torch.Generator().manual_seed(seed)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    vectors = torch.randn(len(lengths), max(lengths), SIZE, generator=generator)
    return torch.where(mask[..., None], vectors, torch.full((), 50.0)), mask


def pooling() -> AttentivePooling:
    torch.manual_seed(0)
    return AttentivePooling(SIZE)


def softmax(scores: list[float]) -> list[float]:
    exponents = [math.exp(score) for score in scores]
    return [exponent / sum(exponents) for exponent in exponents]


def written_out(matrix: Tensor, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """Both vectors of one pair: equations 5 to 9 of the paper, word by word."""
    compared = [[math.tanh((q @ matrix @ a).item()) for a in second] for q in first]
    of_first = softmax([max(row) for row in compared])
    of_second = softmax([max(row[j] for row in compared) for j in range(len(second))])
    vectors = [
        sum(w * state for w, state in zip(weights, text, strict=True))
        for weights, text in ((of_first, first), (of_second, second))
    ]
    return vectors[0], vectors[1]


def test_a_batch_of_pairs_is_each_pair_written_out_word_by_word():
    """A mean for the maximum, rows for columns, U on the wrong side, a missing tanh, or padding in
    a maximum would each show here."""
    pool = pooling()
    (first, first_mask), (second, second_mask) = states(FIRST, 1), states(SECOND, 2)
    found = pool(first, first_mask, second, second_mask)
    for row, (m, n) in enumerate(zip(FIRST, SECOND, strict=True)):
        expected = written_out(pool.similarity.detach(), first[row, :m], second[row, :n])
        torch.testing.assert_close((found[0][row], found[1][row]), expected)


def test_weights_sum_to_one_over_the_real_words_only():
    (first, first_mask), (second, second_mask) = states(FIRST, 1), states(SECOND, 2)
    for weights, mask in zip(
        pooling().weights(first, first_mask, second, second_mask), (first_mask, second_mask), strict=True
    ):
        torch.testing.assert_close(weights.sum(1), torch.ones(3))
        assert not weights[~mask].any() and (weights[mask] > 0).all()


def test_texts_whose_words_are_never_alike_are_still_told_from_padding():
    """All comparisons are near -1 here: a zero at padding would win every maximum, and all words
    would count the same."""
    pool = pooling()
    with torch.no_grad():
        pool.similarity.copy_(-torch.eye(SIZE))
    first, second = torch.zeros(1, 2, SIZE), torch.zeros(1, 3, SIZE)
    first[0, :, 0], second[0, :, 0] = torch.tensor([0.5, 2.0]), torch.tensor([1.0, 3.0, 9.0])
    of_first, _ = pool.weights(first, torch.ones(1, 2).bool(), second, torch.tensor([[True, True, False]]))
    torch.testing.assert_close(of_first[0], torch.tensor(softmax([math.tanh(-0.5), math.tanh(-2.0)])))


def test_a_matrix_of_zeros_gives_plain_means():
    pool = pooling()
    with torch.no_grad():
        pool.similarity.zero_()
    (first, first_mask), (second, second_mask) = states(FIRST, 1), states(SECOND, 2)
    question, answer = pool(first, first_mask, second, second_mask)
    torch.testing.assert_close(question[0], first[0, :3].mean(0))
    torch.testing.assert_close(answer[1], second[1].mean(0))
