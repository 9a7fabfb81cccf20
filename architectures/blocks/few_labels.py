"""Facts of training rows of which few have a label: which rows these are, and which words say most
of a class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.preprocessing import normalize

from harness.data.corpus import Split
from harness.views.base import words_of
from harness.views.words import UNKNOWN, Words

COMMON = 0.2
"""Largest share of the texts that a telling word may be in."""


def known_classes(labelled: Split, texts: Split) -> np.ndarray:
    """The number (N,) of the class of each text that a labelled row has the id of; -1 for all
    others."""
    classes: dict[Any, int] = dict(zip(labelled.rows["id"], labelled.targets["label"].tolist(), strict=True))
    return np.array([classes.get(id, -1) for id in texts.rows["id"]], dtype=np.int64)


def telling_words(texts: Sequence[Sequence[int]], classes: np.ndarray, number: int, most: int) -> list[list[int]]:
    """At most so many words of each of ``number`` classes, those with the highest mean TF-IDF over
    the class's texts first.

    A text's weights have length 1, and grow with the logarithm of a word's count. Words that more
    than a fifth of the texts have count only where a class has no others. ``classes`` (texts,) are
    those of the texts, which are numbers of words; the unknown word is none. Marks and words of one
    letter may be among them, which the authors' program (scikit-learn's words) leaves out.
    """
    lengths = [len(text) for text in texts]
    places = np.repeat(np.arange(len(texts)), lengths), np.concatenate([np.asarray(text, int) for text in texts])
    counts = csr_array((np.ones(sum(lengths)), places))
    having = np.bincount(counts.indices)  # the last word stands somewhere
    rareness = (1 + np.log((1 + len(texts)) / (1 + having))) * (np.arange(counts.shape[1]) > UNKNOWN)
    counts.data = 1 + np.log(counts.data)
    found: list[list[int]] = [[] for _ in range(number)]
    for limit in (max(1, COMMON * len(texts)), len(texts)):
        weights = normalize(counts.multiply(rareness * (having <= limit)))
        for each in [each for each, words in enumerate(found) if not words]:
            sums = np.asarray(weights[classes == each].sum(0)).ravel()
            found[each] = [int(word) for word in np.argsort(-sums, kind="stable")[:most] if sums[word] > 0]
    return found


def words_of_names(view: Words, names: Sequence[str]) -> list[list[int]]:
    """The words of each name that the texts have; ``ValueError`` for a name without any."""
    found = []
    for name in names:
        words = [view.form(word) for word in words_of(name) if word.isalnum()]
        known = [id for id in view.vocabulary.ids(words) if id != UNKNOWN]
        if not known:
            raise ValueError(f"the texts have no word of the label {name!r}")
        found.append(known)
    return found
