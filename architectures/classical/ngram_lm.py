"""n-gram language model with modified Kneser-Ney smoothing."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from harness.kinds import Estimator
from harness.problems.language_model import UNKNOWN, vocabulary
from harness.registry import register
from harness.task import Row
from harness.views.base import words_of

OTHERWISE = 0.75
"""Discount where the counts of counts give none between 0 and the count itself."""


@register(
    "ngram_lm",
    name="n-gram language model",
    kind="fit",
    paper="Shannon 1948",
    source="X4.6 R25",
    year=1948,
    deviations=(
        "Shannon's estimates are not smoothed; these are, by Chen and Goodman 1999, as in the tables of language"
        " models whose baseline this one is.",
    ),
)
class NgramLanguageModel(Estimator):
    """p(w | h) = (c(hw) - D(c(hw))) / c(h.) + g(h) p(w | h'), with h' the history h without its
    first word: interpolated modified Kneser-Ney (Chen and Goodman 1999, section 3).

    The longest n-grams, and those at the beginning of a text, have their counts as c; of a shorter
    one c is the number of different words before it. g(h) is what was taken, the sum over w of
    D(c(hw)) / c(h.). Behind the single words stand all words alike, and a history that training
    never showed leaves all to the shorter one. A word is read as given; one that training lacks is
    the unknown word. ``order`` is the length of the longest n-grams.
    """

    task_types = ("language_model",)

    def __init__(self, seed: int = 0, order: int = 5):
        super().__init__(seed)
        if order < 1:
            raise ValueError(f"order={order}: the longest n-grams have one word at least")
        self.order = order

    def fit(self, train: Sequence[Row], dev: Sequence[Row], unlabelled: Sequence[Row] = ()) -> None:
        """Number the n-grams of each length, the shortest first: an n-gram is the number of its
        history and its last word (``keys``). Then turn counts into ``shares`` (c - D) / c(h.) of
        each n-gram and ``rests`` g(h) of each history."""
        self.vocabulary = vocabulary(train)
        words, places = self._stream(train)
        self.keys: list[np.ndarray] = []
        counts, first, numbers = [], [], [np.zeros(len(words), dtype=np.int64)]
        for length in range(1, self.order + 1):
            where = np.flatnonzero(places >= length - 1)
            if not len(where):  # no text is that long
                break
            found = np.unique(
                self._key(numbers[-1], words, where, length), return_index=True, return_inverse=True, return_counts=True
            )
            self.keys.append(found[0])
            first.append(where[found[1]])
            numbers.append(_at(where, found[2], len(words)))
            counts.append(found[3])
        for length in range(1, len(self.keys)):  # n-grams that are the end of a longer one: words before them
            before = np.bincount(numbers[length][first[length]], minlength=len(self.keys[length - 1]))
            counts[length - 1] = np.where(places[first[length - 1]] == length - 1, counts[length - 1], before)
        counts[0][places[first[0]] == 0] = 0  # the mark of a beginning is never foretold
        self.shares, self.rests = [], []
        for length, (keys, count) in enumerate(zip(self.keys, counts, strict=True)):
            histories, number = keys // self._size, len(self.keys[length - 1]) if length else 1
            taken = discounts(count)[np.minimum(count, 3)]
            total, rest = (np.bincount(histories, weights=each, minlength=number) for each in (count, taken))
            self.shares.append((count - taken) / np.maximum(total, 1)[histories])
            self.rests.append(np.where(total > 0, rest / np.maximum(total, 1), 1.0))
        self.parameter_count = sum(map(len, self.keys)) + sum(map(len, self.rests))

    def predict(self, rows: Sequence[Row]) -> list[list[float]]:
        words, places = self._stream(rows)
        numbers, probabilities = np.zeros(len(words), dtype=np.int64), np.full(len(words), 1 / len(self.vocabulary))
        for length, (keys, shares, rests) in enumerate(zip(self.keys, self.shares, self.rests, strict=True), 1):
            where = np.flatnonzero(places >= length - 1)
            where = where[numbers[where - 1] >= 0]  # the history of a word is known, and that of no words is
            wanted = self._key(numbers, words, where, length)
            place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
            known = keys[place] == wanted
            shorter = rests[wanted // self._size] * probabilities[where]
            probabilities[where] = np.where(known, shares[place], 0.0) + shorter
            numbers = _at(where, np.where(known, place, -1), len(words))
        logs, starts = np.log(probabilities), np.flatnonzero(places == 0)
        parts = [part[1:].tolist() for part in np.split(logs, starts[1:])]
        return [[math.fsum(part), len(part)] for part in parts]

    @property
    def _size(self) -> int:
        """Number of words, with the mark of a beginning."""
        return len(self.vocabulary) + 1

    def _stream(self, rows: Sequence[Row]) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the words of all texts, one text behind another and a mark before each, and
        the place of each word in its text (the mark's is 0)."""
        known = {word: number for number, word in enumerate(self.vocabulary)}
        texts = [[len(known), *(known.get(word, known[UNKNOWN]) for word in words_of(row["text"]))] for row in rows]
        return np.concatenate(texts), np.concatenate([np.arange(len(text)) for text in texts])

    def _key(self, numbers: np.ndarray, words: np.ndarray, where: np.ndarray, length: int) -> np.ndarray:
        """The n-grams of a length that end at these places; ``numbers`` are those of one less."""
        return (numbers[where - 1] if length > 1 else 0) * self._size + words[where]


def discounts(counts: np.ndarray) -> np.ndarray:
    """Amounts taken from a count of 0, 1, 2, and 3 or more: (4,).

    D(k) = k - (k + 1) Y n(k + 1) / n(k) with Y = n(1) / (n(1) + 2 n(2)), n(k) the number of n-grams
    with the count k (Chen and Goodman 1999, equation 17).
    """
    of = np.bincount(np.minimum(counts, 5), minlength=6)
    y = of[1] / max(1, of[1] + 2 * of[2])
    taken = [k - (k + 1) * y * of[k + 1] / of[k] if of[k] else 0.0 for k in (1, 2, 3)]
    return np.array([0.0, *(d if 0 < d < k else OTHERWISE for k, d in enumerate(taken, 1))])


def _at(where: np.ndarray, values: np.ndarray, length: int) -> np.ndarray:
    """The values at their places, -1 elsewhere."""
    all_places = np.full(length, -1)
    all_places[where] = values
    return all_places
