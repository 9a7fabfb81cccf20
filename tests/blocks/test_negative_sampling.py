"""Negative sampling against loops in plain numpy: one step, the drawn words, the windows."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch

from architectures.blocks.negative_sampling import Examples, NegativeSampling, kept_shares, window_pairs
from architectures.vectors.skipgram import SkipGram
from harness.ragged import Ragged
from harness.views.words import Vocabulary

COUNTS = np.array([0, 0, 16, 81, 1])


def tables(seed: int = 0) -> NegativeSampling:
    """Vectors far from zero, so that each gradient counts."""
    rng = np.random.default_rng(seed)
    inputs, outputs = (torch.from_numpy(rng.normal(size=(5, 3)).astype(np.float32)) for _ in range(2))
    return NegativeSampling(inputs, outputs, COUNTS, negatives=4, rng=rng)


def sigmoid(x: float) -> float:
    return 1 / (1 + np.exp(-x))


def test_a_step_is_the_sum_of_the_gradients_of_its_examples(monkeypatch):
    """A bag of two rows, one row twice in a bag, a drawn word that is the word itself and one that
    is drawn twice: all from the tables as they were before the step."""
    learner = tables()
    drawn = np.array([[3, 2, 4, 4], [2, 2, 3, 3]])
    monkeypatch.setattr(learner, "draw", lambda count: drawn)
    before_in, before_out = learner.inputs.numpy().copy(), learner.outputs.numpy().copy()
    expected_in, expected_out = before_in.astype(float), before_out.astype(float)
    for rows, word, negatives in (([2, 4], 3, drawn[0]), ([3, 3, 2], 4, drawn[1])):
        hidden = before_in[rows].mean(axis=0)
        change = np.zeros(3)
        for other, label in ((word, 1), *((n, 0) for n in negatives if n != word)):
            step = 0.1 * (label - sigmoid(hidden @ before_out[other]))
            change += step * before_out[other]
            expected_out[other] += step * hidden
        for row in rows:
            expected_in[row] += change
    learner.learn(Examples(np.array([2, 4, 3, 3, 2]), np.array([0, 2]), np.array([3, 4])), rate=0.1)
    np.testing.assert_allclose(learner.inputs.numpy(), expected_in, atol=1e-5)
    np.testing.assert_allclose(learner.outputs.numpy(), expected_out, atol=1e-5)


def test_the_step_is_the_gradient_that_torch_finds(monkeypatch):
    """Of examples of one row each, for which the whole gradient of the mean is the row's own."""
    learner = tables()
    monkeypatch.setattr(learner, "draw", lambda count: np.array([[2, 3, 2, 3]] * count))
    inputs, outputs = (table.clone().requires_grad_() for table in (learner.inputs, learner.outputs))
    hidden = inputs[torch.tensor([2, 3])]
    right = torch.nn.functional.logsigmoid((hidden * outputs[4]).sum(1))
    wrong = torch.nn.functional.logsigmoid(-hidden @ outputs[[2, 3, 2, 3]].T).sum(1)
    (right + wrong).sum().backward()
    wanted = [(table + 0.1 * table.grad).detach() for table in (inputs, outputs)]
    learner.learn(Examples(np.array([2, 3]), np.array([0, 1]), np.array([4, 4])), rate=0.1)
    torch.testing.assert_close([learner.inputs, learner.outputs], wanted)


def test_negatives_are_drawn_by_their_counts_to_the_power_of_three_quarters():
    """8 : 27 : 1, and never padding or the unknown word."""
    drawn = Counter(tables().draw(20_000).flatten().tolist())
    assert set(drawn) == {2, 3, 4} and drawn.total() == 80_000
    assert [drawn[word] / drawn.total() for word in (2, 3, 4)] == pytest.approx([8 / 36, 27 / 36, 1 / 36], abs=0.005)


def test_windows_are_those_of_a_loop():
    """Each centre has its own distance, on both sides and in its own text."""
    text_of = np.array([0] * 6 + [1] + [2] * 3)
    found = window_pairs(text_of, 3, np.random.default_rng(4))
    distances = np.random.default_rng(4).integers(1, 4, len(text_of))
    expected = [
        (i, j)
        for i in range(len(text_of))
        for j in range(len(text_of))
        if i != j and abs(i - j) <= distances[i] and text_of[i] == text_of[j]
    ]
    pairs = list(zip(found.centres.tolist(), found.contexts.tolist(), strict=True))
    assert sorted(pairs) == expected and found.centres.tolist() == sorted(found.centres)
    assert {*distances} == {1, 2, 3}


def test_frequent_words_are_kept_less_often():
    """sqrt(t / share): half of a word with four times the threshold, all of rarer ones, and none of
    the unknown word, which no child would find by its name."""
    assert kept_shares(np.array([0, 0, 40, 10, 5, 945]), 0.01).tolist() == pytest.approx(
        [0, 0, 0.5, 1, 1, (0.01 / 0.945) ** 0.5]
    )


def test_a_batch_has_whole_bags():
    examples = Examples(np.arange(7), np.array([0, 2, 3, 6]), np.array([9, 8, 7, 6]))
    batches = [[part.tolist() for part in batch] for batch in examples.batches(3)]
    assert batches == [[[0, 1, 2, 3, 4, 5], [0, 2, 3], [9, 8, 7]], [[6], [0], [6]]]


WORDS = Vocabulary(["a", "b", "c"], [400, 300, 300])
TEXTS = Ragged.of([[2, 3, 4, 1, 2]] * 200)


def test_equal_seeds_are_equal_to_the_bit_and_others_are_not():
    first, again, other = (SkipGram(seed, dims=4, threshold=1.0, epochs=1).train(TEXTS, WORDS) for seed in (0, 0, 1))
    assert np.array_equal(first, again) and not np.array_equal(first, other)


def test_the_rate_falls_to_zero_over_all_passes(monkeypatch):
    rates: list[float] = []
    monkeypatch.setattr(NegativeSampling, "learn", lambda self, examples, rate: rates.append(rate))
    monkeypatch.setattr("architectures.blocks.negative_sampling.TEXTS_AT_ONCE", 50)
    monkeypatch.setattr("architectures.blocks.negative_sampling.SPREAD", 1e-9)
    SkipGram(dims=4, threshold=1.0, rate=0.4, epochs=2, batch_size=10**6).train(TEXTS, WORDS)
    assert rates == pytest.approx([0.4 * (1 - part / 8) for part in range(8)])


def test_each_pass_reads_all_texts_in_an_order_of_its_own(monkeypatch):
    """The last source of a sorted corpus would otherwise be learnt at a rate of almost zero."""
    texts = Ragged.of([[2 + number] * 2 for number in range(20)])
    words = Vocabulary([f"w{n}" for n in range(20)], [5] * 20)
    seen: list[list[int]] = []
    monkeypatch.setattr(NegativeSampling, "learn", lambda self, examples, rate: seen.append(examples.words.tolist()))
    monkeypatch.setattr("architectures.blocks.negative_sampling.SPREAD", 1e-9)
    SkipGram(dims=4, threshold=1.0, epochs=2).train(texts, words)
    assert sorted(seen[0]) == sorted(seen[1]) == sorted(texts.values.tolist()) and seen[0] != seen[1]
