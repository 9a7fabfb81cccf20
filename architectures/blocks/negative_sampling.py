"""Negative sampling (Mikolov et al. 2013b): word vectors learnt by telling words that stood in a
place from drawn ones."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np

from architectures.blocks.hogwild import (
    CompiledTrainer,
    Rates,
    Rows,
    compiled,
    fraction,
    learn_passes,
    mean_of_rows,
    move_rows,
    rate_at,
)
from harness.ragged import Ragged
from harness.views.words import Vocabulary


class Urn(NamedTuple):
    """Words that are drawn in proportion to their count^0.75, by the alias method (Walker 1977).

    All V places are drawn alike. Each holds the word of its number with the probability ``own``
    (V,), and ``other`` (V,) else.
    """

    own: np.ndarray
    other: np.ndarray

    @classmethod
    def of(cls, counts: np.ndarray, power: float = 0.75) -> Urn:
        shares = counts.astype(float) ** power
        own, other = shares / shares.mean(), np.arange(len(counts))
        too_few, too_many = np.flatnonzero(own < 1).tolist(), np.flatnonzero(own > 1).tolist()
        while too_few and too_many:
            place, giver = too_few.pop(), too_many[-1]
            other[place] = giver
            own[giver] -= 1 - own[place]
            if own[giver] <= 1:
                too_few.append(too_many.pop())
        return cls(own.astype(np.float32), other.astype(np.int32))


@compiled
def draw(urn, state):
    """A word of an urn."""
    spot = fraction(state) * len(urn.own)
    place = int(spot)
    return place if np.float32(spot - place) < urn.own[place] else np.int64(urn.other[place])


class Example(NamedTuple):
    """A vector ``hidden`` (D,) that foretells the first of ``words`` (1 + negatives,) and not the
    others; the ``errors`` (1 + negatives,) of their probabilities, and the ``change`` (D,) of
    ``hidden`` by a step."""

    hidden: np.ndarray
    words: np.ndarray
    errors: np.ndarray
    change: np.ndarray


@compiled
def example_of(dims, negatives):
    """Memory for an example, which those of a thread use in turn."""
    words, errors = np.zeros(1 + negatives, np.int64), np.zeros(1 + negatives, np.float32)
    return Example(np.zeros(dims, np.float32), words, errors, np.zeros(dims, np.float32))


@compiled
def ask(word, urn, state, example):
    """Puts a word and drawn ones into an example."""
    example.words[0] = word
    for number in range(1, len(example.words)):
        example.words[number] = draw(urn, state)


@compiled
def foretell(example, outputs, rate, frozen):
    """A step of gradient ascent on log s(u_w h) + sum log s(-u_n h) over drawn words n.

    A drawn word that is w itself is left out. ``outputs`` u (V, D) move, unless they are frozen;
    that of h is left in ``change``.
    """
    hidden, words, errors, change = example
    for number, word in enumerate(words):  # all products first: memory of the next is fetched beside the sum of one
        product = np.float32(0)
        for i in range(len(hidden)):
            product += hidden[i] * outputs[word, i]
        errors[number] = np.float32(number == 0) - np.float32(1) / (np.float32(1) + np.exp(-product))
    change[:] = 0
    for number, word in enumerate(words):
        if number and word == words[0]:
            continue
        step = rate * errors[number]
        for i in range(len(hidden)):
            change[i] += step * outputs[word, i]
            if not frozen:
                outputs[word, i] += step * hidden[i]


@compiled
def learn(sources, word, bags, inputs, outputs, urn, rate, state, example):
    """Learns to foretell a word from the mean of the rows of ``inputs`` that make the ``sources``.
    Each row moves by the whole gradient of the mean, not by its share of it, as in the authors'
    programs."""
    mean_of_rows(sources, bags, inputs, example.hidden)
    ask(word, urn, state, example)
    foretell(example, outputs, rate, False)
    move_rows(sources, bags, inputs, example.change)


@compiled
def learn_windows(order, rates, state, texts, kept, window, whole, bags, inputs, outputs, urn, negatives):
    """Steps for all windows of some texts; returns the number of examples.

    A word of a text stays with the probability ``kept`` (V,). Each word that stays is a centre, and
    those that stand up to a distance from it, drawn from 1 to ``window``, are around it. If
    ``whole``, all words around foretell the centre by their mean; else the centre foretells each of
    them. ``bags`` are the rows of ``inputs`` that make each word.
    """
    example = example_of(inputs.shape[1], negatives)
    around = np.zeros(2 * window, np.int64)
    examples = 0
    for number in range(len(order)):
        rate = rate_at(rates, number, len(order))
        begin, end = texts.offsets[order[number]], texts.offsets[order[number] + 1]
        words, length = np.zeros(end - begin, np.int64), 0
        for place in range(begin, end):
            if fraction(state) < kept[texts.values[place]]:
                words[length] = texts.values[place]
                length += 1
        for centre in range(length):
            reach, count = 1 + int(fraction(state) * window), 0
            for beside in range(max(0, centre - reach), min(length, centre + reach + 1)):
                if beside != centre:
                    around[count] = words[beside]
                    count += 1
            if count:
                alone, beside_it = words[centre : centre + 1], around[:count]
                sources, targets = (beside_it, alone) if whole else (alone, beside_it)
                for word in targets:
                    learn(sources, word, bags, inputs, outputs, urn, rate, state, example)
                examples += len(targets)
    return examples


class WindowTrainer(CompiledTrainer):
    """Word vectors learnt from windows over a text (:func:`learn_windows`).

    A word of the text is kept with the probability sqrt(``threshold`` / its share), at most 1, anew
    in each of the ``epochs`` passes; rare words are left out before. The texts come in an order of
    chance; the rate falls linearly from ``rate`` to zero, by the texts read.
    """

    whole: ClassVar[bool] = False
    """True for windows that foretell their centre, False for centres that foretell each word."""
    power: ClassVar[float] = 0.75
    """Negative words are drawn in proportion to this power of their counts."""

    def __init__(
        self,
        seed: int,
        dims: int,
        window: int,
        negatives: int,
        threshold: float,
        rate: float,
        epochs: int,
        threads: int,
    ):
        super().__init__(seed, threads)
        self.dims, self.window, self.negatives, self.threshold = dims, window, negatives, threshold
        self.rate, self.epochs = rate, epochs

    def bags_of(self, vocabulary: Vocabulary) -> Ragged:
        """Rows of the table of inputs whose mean is each word (V bags)."""
        return Ragged.of([[place] for place in range(len(vocabulary))])

    def train(self, texts: Ragged, vocabulary: Vocabulary) -> np.ndarray:
        rng = np.random.default_rng(self.seed)
        counts, self.bags = np.array(vocabulary.row_counts()), self.bags_of(vocabulary)
        inputs = beginnings(int(self.bags.values.max()) + 1, self.dims, rng)
        outputs = np.zeros((len(vocabulary), self.dims), np.float32)
        windows = Rows.of(texts), kept_shares(counts, self.threshold), self.window, self.whole
        tables = Rows.of(self.bags), inputs, outputs, Urn.of(counts, self.power), self.negatives

        def learn(order: np.ndarray, rates: Rates, state: np.ndarray) -> None:
            learn_windows(order, rates, state, *windows, *tables)

        learn_passes(learn, len(texts), self.epochs, self.rate, self.threads, rng)
        return inputs


def beginnings(rows: int, dims: int, rng: np.random.Generator) -> np.ndarray:
    """Vectors (rows, dims) as word2vec's begin: uniform in +-1/2D."""
    return ((rng.random((rows, dims)) - 0.5) / dims).astype(np.float32)


def kept_shares(counts: np.ndarray, threshold: float) -> np.ndarray:
    """Probability with which each word is kept (V,); 0 for one without a count, such as the unknown
    word."""
    shares = counts / counts.sum()
    return np.sqrt(threshold / np.where(counts > 0, shares, np.inf)).clip(max=1)
