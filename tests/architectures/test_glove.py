"""GloVe: its counts by a loop, its steps against torch's gradients, and planted topics."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch

from architectures.vectors import glove
from architectures.vectors.glove import GloVe, Side, neighbour_counts
from harness.ragged import Ragged
from harness.views.words import Vocabulary
from tests.support import planted_topics


@pytest.mark.parametrize("at_once", [1, 100])
def test_counts_are_those_of_a_loop(monkeypatch, at_once):
    """Words two places apart count half; the unknown word (1) takes no place, and no window goes
    from text to text."""
    monkeypatch.setattr(glove, "TEXTS_AT_ONCE", at_once)
    texts = [[2, 3, 1, 4, 2, 2], [], [4], [3, 4, 5, 2]]
    expected: Counter[tuple[int, int]] = Counter()
    for text in texts:
        known = [word for word in text if word != 1]
        for i, first in enumerate(known):
            for j, second in enumerate(known):
                if 0 < abs(i - j) <= 3:
                    expected[first, second] += 1 / abs(i - j)
    found = neighbour_counts(Ragged.of(texts), 6, window=3)
    assert found.toarray() == pytest.approx(np.array([[expected[i, j] for j in range(6)] for i in range(6)]))
    assert neighbour_counts(Ragged.of([[2, 3, 4]]), 5, window=2)[2, 4] == 0.5


def test_a_step_is_adagrads_on_the_gradients_of_the_cells():
    """Of two cells that share a row, one of them above the count from which f is 1."""
    system, rng = GloVe(dims=3, most=10.0, rate=0.2), np.random.default_rng(1)
    words, others = Side(4, 3, rng), Side(4, 3, rng)
    for side in (words, others):
        side.values.mul_(8)
        side.squares.add_(torch.rand(side.squares.shape, generator=torch.Generator().manual_seed(2)))
    before = [(side.values.clone(), side.squares.clone()) for side in (words, others)]
    row, column, counts = torch.tensor([2, 2]), torch.tensor([3, 1]), torch.tensor([2.5, 40.0])
    wanted = [[values.clone(), squares.clone()] for values, squares in before]
    for i, j, x in zip(row, column, counts, strict=True):
        leaves = [values.clone().requires_grad_() for values, _ in before]
        w, v = leaves[0][i], leaves[1][j]
        weight = min(1.0, (x.item() / 10) ** 0.75)
        (0.5 * weight * (w[:3] @ v[:3] + w[3] + v[3] - x.log()) ** 2).backward()
        for leaf, (_, squares), target in zip(leaves, before, wanted, strict=True):
            target[0] -= 0.2 * leaf.grad / squares.sqrt()
            target[1] += leaf.grad**2
    system._step(words, others, row, column, counts)
    for side, (values, squares) in zip((words, others), wanted, strict=True):
        torch.testing.assert_close(side.values, values)
        torch.testing.assert_close(side.squares, squares)


def test_both_sides_are_summed_and_biases_left_out(monkeypatch):
    sides: list[Side] = []
    made = Side.__init__
    monkeypatch.setattr(Side, "__init__", lambda self, *given: (made(self, *given), sides.append(self))[0])
    words = Vocabulary(["a", "b"], [9, 9])
    vectors = GloVe(dims=3, epochs=1).train(Ragged.of([[2, 3]]), words)
    assert vectors.shape == (4, 3)
    assert np.array_equal(vectors, (sides[0].values + sides[1].values)[:, :3].numpy())


def test_words_of_a_planted_topic_are_neighbours_and_seeds_are_obeyed():
    rows, dev = planted_topics.rows(300), planted_topics.rows(30, seed=1)
    tables = []
    for seed in (0, 0, 1):
        system = GloVe(seed, dims=8, most=10.0, epochs=30)
        system.fit(rows, dev)
        tables.append(system.vectors)
        assert planted_topics.share_of_neighbours(system.known.words, system.vectors[2:]) > 0.9
    assert np.array_equal(tables[0], tables[1]) and not np.array_equal(tables[0], tables[2])
