"""Sources of labels for texts without any: small classifiers of counted words, each taught by a few
texts of its own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_array
from sklearn.preprocessing import normalize

from architectures.blocks.few_labels import telling_words
from harness.ragged import Ragged
from harness.views.words import UNKNOWN

ABSTAINS = -1
"""Vote of a source that says nothing of a text."""
AT_ONCE = 1024
"""Texts that are compared with others at a time."""

Scores = Callable[[csr_array, np.ndarray, int, csr_array], np.ndarray]
"""A source: counts of words (taught, words) of its texts, their classes (taught,), the number of
classes, counts (N, words) of others -> scores (N, classes) of these."""


def word_counts(texts: Ragged, words: int) -> csr_array:
    """Counts (N, words) of each word in each text; the unknown word is none."""
    known = (texts.values > UNKNOWN).astype(float)
    # A copy, since sums are made in place, and others read the ids.
    counts = csr_array((known, texts.values, texts.offsets), shape=(len(texts), words), copy=True)
    counts.sum_duplicates()
    counts.eliminate_zeros()
    return counts


def naive_bayes(taught: csr_array, classes: np.ndarray, number: int, asked: csr_array) -> np.ndarray:
    """Logarithm of the probability of a class times those of a text's words in it, each counted
    once more than it was seen."""
    of_class = np.stack([np.asarray(taught[classes == each].sum(0)).ravel() for each in range(number)]) + 1
    seen = np.bincount(classes, minlength=number)
    with np.errstate(divide="ignore"):  # a class that the source never saw
        return asked @ np.log(of_class / of_class.sum(1, keepdims=True)).T + np.log(seen / len(classes))


def nearest_text(taught: csr_array, classes: np.ndarray, number: int, asked: csr_array) -> np.ndarray:
    """The highest cosine of a text to one of a class."""
    near = normalize(taught)
    scores = np.full((asked.shape[0], number), -np.inf)
    for begin in range(0, asked.shape[0], AT_ONCE):
        cosines = (normalize(asked[begin : begin + AT_ONCE]) @ near.T).toarray()
        for each in np.unique(classes):
            scores[begin : begin + AT_ONCE, each] = cosines[:, classes == each].max(1)
    return scores


def nearest_mean(taught: csr_array, classes: np.ndarray, number: int, asked: csr_array) -> np.ndarray:
    """The cosine of a text to the mean of a class's texts, each of length 1, words that many texts
    have counting less."""
    rareness = np.log((1 + len(classes)) / (1 + (taught > 0).sum(0)))
    weighed = normalize(taught.multiply(rareness).tocsr())
    means = np.stack([np.asarray(weighed[classes == each].sum(0)).ravel() for each in range(number)])
    return normalize(asked.multiply(rareness).tocsr()) @ normalize(means).T


def words_that_tell(taught: csr_array, classes: np.ndarray, number: int, asked: csr_array) -> np.ndarray:
    """The number of a text's words that are among the ten that tell most of a class."""
    repeated = np.repeat(taught.indices, taught.data.astype(int))
    texts = np.split(repeated, np.cumsum(np.asarray(taught.sum(1), int))[:-1])
    scores = np.zeros((asked.shape[0], number))
    for each, words in enumerate(telling_words(texts, classes, number, 10)):
        scores[:, each] = asked[:, words].sum(1)
    return scores


SOURCES: tuple[Scores, ...] = (naive_bayes, nearest_text, nearest_mean, words_that_tell)


def votes(taught: Ragged, classes: np.ndarray, number: int, asked: Ragged, words: int) -> np.ndarray:
    """The votes (N, sources) of each source on the texts ``asked``, by so many ``words``.

    The texts that are ``taught``, with their classes, are dealt out to the sources in turn, class
    by class: no two sources learn from one text. A source abstains where it has seen none of a
    text's words, and where several classes are best.
    """
    known, others = word_counts(taught, words), word_counts(asked, words)
    order = np.argsort(classes, kind="stable")
    said = np.full((others.shape[0], len(SOURCES)), ABSTAINS)
    for number_of, source in enumerate(SOURCES):
        own = order[number_of :: len(SOURCES)]
        if not len(own):
            continue
        scores = source(known[own], classes[own], number, others)
        best = scores.max(1)
        seen = others @ (known[own].sum(0) > 0) > 0
        clear = seen & ((scores == best[:, None]).sum(1) == 1)
        said[clear, number_of] = scores[clear].argmax(1)
    return said
