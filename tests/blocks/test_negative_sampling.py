"""Negative sampling against loops in plain numpy and Python: one step, the drawn words, and whole
trainings of the three systems that read windows."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from architectures.blocks.hogwild import Rates, Rows
from architectures.blocks.negative_sampling import (
    Example,
    Urn,
    draw,
    example_of,
    foretell,
    kept_shares,
    learn,
    learn_windows,
)
from architectures.vectors.cbow import ContinuousBagOfWords
from architectures.vectors.skipgram import SkipGram
from architectures.vectors.subword_vectors import SubwordVectors
from harness.ragged import Ragged
from harness.views.words import Vocabulary


def tables(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Vectors far from zero, so that each gradient counts."""
    rng = np.random.default_rng(seed)
    inputs, outputs = (rng.normal(size=(5, 3)).astype(np.float32) for _ in range(2))
    return inputs, outputs


@pytest.mark.parametrize("frozen", [False, True])
def test_a_step_is_the_gradient_that_torch_finds(frozen):
    """Of a vector that foretells word 4 and not 2 and 3; that 4 is drawn, too, counts for
    nothing."""
    inputs, outputs = tables()
    leaves = [torch.from_numpy(table.copy()).requires_grad_() for table in (inputs[0], outputs)]
    right, wrong = leaves[0] @ leaves[1][4], leaves[1][[2, 3]] @ leaves[0]
    (torch.nn.functional.logsigmoid(right) + torch.nn.functional.logsigmoid(-wrong).sum()).backward()
    example = Example(inputs[0], np.array([4, 2, 4, 3]), np.zeros(4, np.float32), np.ones(3, np.float32))
    before = outputs.copy()
    foretell(example, outputs, np.float32(0.1), frozen)
    np.testing.assert_allclose(example.change, 0.1 * leaves[0].grad, rtol=1e-5)
    wanted = before + 0.1 * leaves[1].grad.numpy() * (not frozen)
    np.testing.assert_allclose(outputs, wanted, rtol=1e-5)


def sigmoid(x: float) -> float:
    return 1 / (1 + np.exp(-x))


def test_a_bag_foretells_by_its_mean_and_each_row_takes_the_whole_gradient():
    """Words of one row and of two; only word 3 is ever drawn, twice for this example."""
    inputs, outputs = tables()
    expected_in, expected_out = inputs.astype(float), outputs.astype(float)
    hidden = expected_in[[0, 2, 4]].mean(axis=0)
    change = np.zeros(3)
    before = expected_out.copy()
    for word, label in ((1, 1), (3, 0), (3, 0)):
        step = 0.1 * (label - sigmoid(hidden @ before[word]))
        change += step * expected_out[word]
        expected_out[word] += step * hidden
    expected_in[[0, 2, 4]] += change
    bags, urn = Rows.of(Ragged.of([[0], [1], [2, 4]])), Urn.of(np.array([0, 0, 0, 7]))
    state = np.array([1], np.uint64)
    learn(np.array([0, 2]), 1, bags, inputs, outputs, urn, np.float32(0.1), state, example_of(3, 2))
    np.testing.assert_allclose(inputs, expected_in, rtol=1e-5)
    np.testing.assert_allclose(outputs, expected_out, rtol=1e-5)


POWERS = {SkipGram: 0.75, ContinuousBagOfWords: 0.75, SubwordVectors: 0.5}
"""Of the authors' programs: word2vec's, and fastText's root."""


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=40).filter(any))
def test_an_urn_holds_each_word_by_its_count_to_the_power_of_three_quarters(counts):
    """And never one without a count, such as padding and the unknown word."""
    urn, held = Urn.of(np.array(counts)), np.zeros(len(counts))
    np.add.at(held, np.arange(len(counts)), urn.own)
    np.add.at(held, urn.other, 1 - urn.own)
    shares = np.array(counts) ** 0.75
    np.testing.assert_allclose(held / len(counts), shares / shares.sum(), atol=1e-6)
    assert not held[np.array(counts) == 0].any()


def test_words_are_drawn_as_the_urn_holds_them():
    """8 : 27 : 1."""
    urn, state = Urn.of(np.array([0, 0, 16, 81, 1])), np.array([7], np.uint64)
    drawn = Counter(draw(urn, state) for _ in range(40_000))
    assert set(drawn) == {2, 3, 4}
    assert [drawn[word] / 40_000 for word in (2, 3, 4)] == pytest.approx([8 / 36, 27 / 36, 1 / 36], abs=0.01)


def test_frequent_words_are_kept_less_often():
    """sqrt(t / share): half of a word with four times the threshold, all of rarer ones, and none of
    the unknown word, which no child would find by its name."""
    assert kept_shares(np.array([0, 0, 40, 10, 5, 945]), 0.01).tolist() == pytest.approx(
        [0, 0, 0.5, 1, 1, (0.01 / 0.945) ** 0.5]
    )


def examples(texts: list[list[int]], window: int, whole: bool = False, kept: float = 1.0) -> int:
    """The number of examples of some texts, of which a share of the words is kept."""
    inputs, outputs = tables()
    bags, urn = Rows.of(Ragged.of([[word] for word in range(5)])), Urn.of(np.array([0, 0, 1, 1, 1]))
    read, state = Rows.of(Ragged.of(texts)), np.array([3], np.uint64)
    order, shares = np.arange(len(texts)), np.array([0, 0, kept, kept, kept])
    given = read, shares, window, whole, bags, inputs, outputs, urn, 1
    return learn_windows(order, Rates(0.0, 0.0), state, *given)


def test_the_number_of_pairs_is_that_of_the_windows():
    """Exactly so for neighbours alone, which no text has beyond its ends; on average for distances
    of 1 to 3: a pair d apart is read from each side with the probability (4 - d) / 3."""
    texts = [[2, 3, 4, 2], [], [3], [4, 2]] * 500
    assert examples(texts, window=1) == 500 * (2 * 3 + 2 * 1)
    assert examples(texts, window=1, whole=True) == 500 * (4 + 2), "a word that stands alone is none"
    expected = 500 * (2 * (3 * 1 + 2 * 2 / 3 + 1 / 3) + 2)
    assert examples(texts, window=3) == pytest.approx(expected, rel=0.03)


def test_windows_close_over_words_that_are_left_out():
    """Unknown words (1) never stay, and of the others so many as are to be kept."""
    assert examples([[2, 1, 1, 3]], window=1) == 2
    # Of 20 words n stay; each of the n has two neighbours, but for the first and the last.
    staying = examples([[2] * 20] * 1000, window=1, kept=0.5) / 1000
    assert staying == pytest.approx(2 * (20 * 0.5 - 1), rel=0.03)


# --- whole trainings ---


class SplitMix:
    """The generator of the threads, in integers of any length."""

    def __init__(self, state: int):
        self.state = state

    def __call__(self) -> float:
        self.state = (self.state + 0x9E3779B97F4A7C15) % 2**64
        bits = self.state
        bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        bits = (bits ^ bits >> 27) * 0x94D049BB133111EB % 2**64
        return (bits ^ bits >> 31) // 2**11 / 2**53


WORDS = Vocabulary(["abc", "abcd", "xyz", "rare"], [400, 300, 300, 30])
TEXTS = [[2, 3, 4, 1, 2], [4, 3, 5, 3, 2, 4, 4], [], [2], [5, 2]] * 10
SETTINGS = {"dims": 4, "window": 2, "negatives": 3, "threshold": 0.2, "rate": 0.5, "epochs": 2}


def trained(system, bags: list[list[int]], whole: bool) -> np.ndarray:
    """The table of inputs after a training in plain Python, from the same random numbers."""
    rng, counts = np.random.default_rng(system.seed), np.array([0, 0, 400, 300, 300, 30])
    inputs = (rng.random((max(map(max, bags)) + 1, system.dims)) - 0.5) / system.dims
    outputs, urn = np.zeros((6, system.dims)), Urn.of(counts, POWERS[type(system)])
    kept = np.minimum(1, np.sqrt(0.2 / np.maximum(counts / counts.sum(), 1e-12))) * (counts > 0)
    for number in range(2):
        order = rng.permutation(len(TEXTS))
        fraction = SplitMix(int(rng.integers(2**64, dtype=np.uint64)))
        for turn, text in enumerate(order):
            rate = 0.5 * (1 - (number + turn / len(TEXTS)) / 2)
            words = [word for word in TEXTS[text] if fraction() < kept[word]]
            for place, centre in enumerate(words):
                reach = 1 if fraction() < 0.5 else 2
                around = words[max(0, place - reach) : place] + words[place + 1 : place + 1 + reach]
                for sources, word in [(around, centre)] if whole and around else [([centre], c) for c in around]:
                    rows = [row for source in sources for row in bags[source]]
                    hidden, change = inputs[rows].mean(axis=0), 0.0
                    asked = [word]
                    for _ in range(3):
                        spot = fraction() * 6
                        place_in_urn = int(spot)
                        own = spot - place_in_urn < urn.own[place_in_urn]
                        asked.append(place_in_urn if own else int(urn.other[place_in_urn]))
                    steps = [rate * ((n == 0) - sigmoid(hidden @ outputs[w])) for n, w in enumerate(asked)]
                    for n, (each, step) in enumerate(zip(asked, steps, strict=True)):
                        if n == 0 or each != word:
                            change = change + step * outputs[each]
                            outputs[each] += step * hidden
                    for row in rows:
                        inputs[row] += change
    return inputs


@pytest.mark.parametrize(("cls", "whole"), [(SkipGram, False), (ContinuousBagOfWords, True), (SubwordVectors, False)])
def test_a_training_is_that_of_plain_loops(cls, whole):
    """Each word, window, drawn word, rate and step of it, and the seed from which they come."""
    system = cls(seed=3, **SETTINGS)
    vectors = system.train(Ragged.of(TEXTS), WORDS)
    bags = [bag.tolist() for bag in map(system.bags.__getitem__, range(6))]
    table = trained(system, bags, whole)
    wanted = np.array([table[bag].mean(axis=0) for bag in bags])
    np.testing.assert_allclose(vectors, wanted, rtol=1e-4, atol=1e-6)
    assert np.abs(vectors[2:]).max() > 0.4, "far from where they began"


def test_equal_seeds_are_equal_to_the_bit_and_others_are_not():
    texts = Ragged.of([[2, 3, 4, 1, 2]] * 200)
    first, again, other = (SkipGram(seed, dims=4, threshold=1.0, epochs=1).train(texts, WORDS) for seed in (0, 0, 1))
    assert np.array_equal(first, again) and not np.array_equal(first, other)
