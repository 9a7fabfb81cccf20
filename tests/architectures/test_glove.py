"""GloVe: its counts by a loop, its steps against torch's gradients, and planted topics."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch

from architectures.vectors import glove
from architectures.vectors.glove import GloVe, learn_cells, neighbour_counts
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


def test_steps_are_adagrads_on_the_gradients_of_the_cells_one_after_the_other():
    """With the rate inside its sums, as in the authors' program. Of two cells that share a row, the
    second of them above the count from which f is 1."""
    rng = np.random.default_rng(1)
    sides = [rng.normal(size=(4, 4)).astype(np.float32) for _ in range(2)]
    squares = [1 + rng.random((4, 4)).astype(np.float32) for _ in range(2)]
    row, column, counts = np.array([2, 1, 2]), np.array([3, 0, 1]), np.array([2.5, 7.0, 40.0], np.float32)
    wanted = [[torch.from_numpy(part.copy()) for part in pair] for pair in zip(sides, squares, strict=True)]
    for cell in (0, 2):
        leaves = [values.clone().requires_grad_() for values, _ in wanted]
        w, v, x = leaves[0][row[cell]], leaves[1][column[cell]], torch.tensor(counts[cell])
        weight = min(1.0, (x.item() / 10) ** 0.75)
        (0.5 * weight * (w[:3] @ v[:3] + w[3] + v[3] - x.log()) ** 2).backward()
        for leaf, target in zip(leaves, wanted, strict=True):
            target[0] -= 0.2 * leaf.grad / target[1].sqrt()
            target[1] += (0.2 * leaf.grad) ** 2
    learn_cells(np.array([0, 2]), row, column, counts, 10.0, 0.2, *sides, *squares)
    for pair, target in zip(zip(sides, squares, strict=True), wanted, strict=True):
        torch.testing.assert_close([torch.from_numpy(part) for part in pair], target)


def test_both_sides_are_summed_and_biases_left_out(monkeypatch):
    sides: list[np.ndarray] = []
    learn = glove.learn_cells
    monkeypatch.setattr(glove, "learn_cells", lambda *given: (sides.extend(given[6:8]), learn(*given)))
    words = Vocabulary(["a", "b"], [9, 9])
    vectors = GloVe(dims=3, epochs=1).train(Ragged.of([[2, 3]]), words)
    assert vectors.shape == (4, 3)
    assert np.array_equal(vectors, (sides[0] + sides[1])[:, :3])


def test_the_squares_begin_at_one_and_the_rate_does_not_fall(monkeypatch):
    """AdaGrad's steps become smaller by themselves."""
    given: list[tuple] = []
    monkeypatch.setattr(glove, "learn_cells", lambda *parts: given.append(parts))
    GloVe(dims=3, epochs=3, rate=0.3, most=7.0).train(Ragged.of([[2, 3, 3]]), Vocabulary(["a", "b"], [9, 9]))
    assert [(parts[4], parts[5]) for parts in given] == [(7.0, 0.3)] * 3
    assert all((squares == 1).all() and squares.shape == (4, 4) for squares in given[0][8:])
    assert sorted(given[0][0]) == [0, 1, 2], "(a, b), (b, a) and (b, b)"


def test_words_of_a_planted_topic_are_neighbours_and_seeds_are_obeyed():
    """On two threads, too, whose tables are not equal to the bit."""
    rows, dev = planted_topics.rows(300), planted_topics.rows(30, seed=1)
    tables = []
    for seed, threads in ((2, 1), (2, 1), (3, 1), (2, 2)):
        system = GloVe(seed, dims=8, most=10.0, epochs=30, threads=threads)
        system.fit(rows, dev)
        tables.append(system.vectors)
        assert planted_topics.share_of_neighbours(system.known.words, system.vectors[2:]) > 0.9
        assert system.deterministic is (threads == 1)
    assert np.array_equal(tables[0], tables[1]) and not np.array_equal(tables[0], tables[2])
