"""Siamese CBOW: sentences by a loop, the loss by hand, and a step by differences of a plain sum."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from architectures.siamese.siamese_cbow import SiameseCBOW, loss, sentences_of
from harness.ragged import Ragged
from harness.views.words import Vocabulary
from tests.support import planted_topics

DOT = 9


def test_sentences_are_those_of_a_loop():
    """A mark belongs to its sentence, a text ends one too, and unknown words (1) are left out; a
    sentence of them alone is none."""
    texts = [[1, DOT, 2, 3, DOT, 4], [], [1, 1], [5, 1, DOT, 8, 1, 6]]
    found, text_of = sentences_of(Ragged.of(texts), np.array([DOT, 8]))
    assert [found[number].tolist() for number in range(len(found))] == [[DOT], [2, 3, DOT], [4], [5, DOT, 8], [6]]
    assert text_of.tolist() == [0, 0, 0, 3, 3]
    found, text_of = sentences_of(Ragged.of([[1], [2], [1, 1], [3]]), np.array([DOT]))
    assert (found.values.tolist(), text_of.tolist()) == ([2, 3], [1, 3])


def test_the_loss_is_the_cross_entropy_of_a_softmax_over_cosines():
    """Cosines 1 and 0 with the neighbours, -1 with the drawn one: whatever the lengths, the target
    is 1/2 for each neighbour."""
    others = torch.tensor([[[3.0, 0.0], [0.0, 0.5], [-7.0, 0.0]]])
    total = math.e + 1 + 1 / math.e
    wanted = -0.5 * math.log(math.e / total) - 0.5 * math.log(1 / total)
    assert loss(torch.tensor([[2.0, 0.0]]), others, neighbours=2).item() == pytest.approx(wanted)
    alike = torch.ones(4, 5, 2)
    assert loss(alike[:, 0], alike, neighbours=2).item() == pytest.approx(math.log(5))


SENTENCES = Ragged.of([[2, 3], [4], [3, 3, 5], [2, 5], [6]], np.int64)
NUMBERS = np.array([[1, 0, 2, 4, 3], [2, 1, 3, 4, 0]])


def summed(table: np.ndarray) -> float:
    """The loss of a step, sentence by sentence."""
    means = [table[SENTENCES[number]].mean(axis=0) for number in range(len(SENTENCES))]
    total = 0.0
    for sentence, *others in NUMBERS:
        u = means[sentence]
        shares = [math.exp(u @ means[o] / np.linalg.norm(u) / np.linalg.norm(means[o])) for o in others]
        total -= sum(0.5 * math.log(share / sum(shares)) for share in shares[:2])
    return total / len(NUMBERS)


def test_a_step_goes_down_the_loss_in_each_number():
    """The first one of Adam moves each number by the rate, against the sign of its gradient; words
    that are not read stay."""
    before = np.random.default_rng(2).normal(size=(8, 3))
    table = nn.EmbeddingBag.from_pretrained(
        torch.tensor(before, dtype=torch.float), freeze=False, mode="mean", sparse=True
    )
    optimizer = torch.optim.SparseAdam(table.parameters(), lr=0.01)
    SiameseCBOW()._step(table, optimizer, SENTENCES, NUMBERS)
    after = table.weight.detach().numpy()
    slopes = np.zeros_like(before)
    for place in np.ndindex(before.shape):
        ends = [before.copy(), before.copy()]
        ends[0][place] -= 1e-5
        ends[1][place] += 1e-5
        slopes[place] = (summed(ends[1]) - summed(ends[0])) / 2e-5
    steep = abs(slopes) > 1e-4
    assert steep[2:7].mean() > 0.9 and not slopes[[0, 1, 7]].any()
    np.testing.assert_allclose((after - before)[steep], -0.01 * np.sign(slopes[steep]), atol=1e-4)
    np.testing.assert_allclose(after[~steep], before[~steep], atol=1e-6)


WORDS = Vocabulary([*"abcdefg", "."], [9] * 8)
TEXTS = Ragged.of([[2, 9, 3, 9, 4, 9, 5, 9], [6, 9, 7, 1, 9, 8, 9], [2, 9, 3]] * 10)
"""Three sentences in a row begin at two places of the first text and at one of the second."""


def numbers_of(monkeypatch, **settings) -> list[np.ndarray]:
    seen: list[np.ndarray] = []
    monkeypatch.setattr(SiameseCBOW, "_step", lambda self, table, optimizer, sentences, numbers: seen.append(numbers))
    SiameseCBOW(**{"dims": 4, "epochs": 2, "batch_size": 30} | settings).train(TEXTS, WORDS)
    return seen


def test_each_sentence_with_two_neighbours_in_its_text_is_read_once_in_a_pass(monkeypatch):
    first, second = numbers_of(monkeypatch, negatives=3)
    middle = sorted(9 * text + place for text in range(10) for place in (1, 2, 5))
    for numbers in (first, second):
        assert sorted(numbers[:, 0].tolist()) == middle
        assert (numbers[:, 1] == numbers[:, 0] - 1).all() and (numbers[:, 2] == numbers[:, 0] + 1).all()
        assert numbers.shape == (30, 6)
    assert first[:, 0].tolist() != second[:, 0].tolist() != middle


def test_all_sentences_are_drawn_and_seeds_are_obeyed(monkeypatch):
    drawn = numbers_of(monkeypatch, negatives=300)[0][:, 3:]
    assert set(drawn.ravel()) == set(range(90))
    first, again, other = (numbers_of(monkeypatch, seed=seed)[0] for seed in (0, 0, 1))
    assert np.array_equal(first, again) and not np.array_equal(first, other)


def test_a_mark_that_is_not_known_ends_nothing(monkeypatch):
    """Without a full stop in the vocabulary each text is one sentence: the unknown word is none."""
    with pytest.raises(ValueError, match="none of the 1 training texts has three sentences"):
        SiameseCBOW().train(Ragged.of([[2, 1, 3, 1, 2, 1, 3]]), Vocabulary(["a", "b"], [9, 9]))


def test_vectors_begin_small():
    """A hundredth about: Adam's first steps are then large beside them, as in the paper."""
    found = SiameseCBOW(epochs=0).train(TEXTS, WORDS)
    assert found.std() == pytest.approx(0.01, rel=0.05) and found.shape == (10, 300)


def test_words_of_a_planted_topic_are_neighbours():
    """Texts of four sentences of one topic."""
    rows = [
        row | {"text": " . ".join(" ".join(row["text"].split()[at : at + 3]) for at in (0, 3, 6, 9)) + " ."}
        for row in planted_topics.rows(400)
    ]
    system = SiameseCBOW(dims=12, rate=0.01, epochs=4)
    system.fit(rows, rows[:40])
    vectors = {word: vector for word, vector in system.word_vectors().items() if word != "."}
    assert planted_topics.share_of_neighbours(list(vectors), np.array(list(vectors.values()))) > 0.9
