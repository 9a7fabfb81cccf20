"""Latent semantic analysis: texts by their coordinates on the main directions of a corpus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC

from architectures.blocks import linear_machine
from architectures.blocks.ngrams import lower_words, ngram_counter
from architectures.blocks.singular_vectors import largest_directions
from harness.kinds import Estimator
from harness.registry import register
from harness.task import Row
from harness.views.base import Text

SMALLEST = 1e-9
"""Share of the largest singular value below which another one is rounding: the directions of a
corpus with fewer of them than wanted."""


def spread(counts: sparse.csr_array) -> np.ndarray:
    """1 + sum over N texts of p log p / log N of each term (V,), p being the text's share of the
    term's occurrences: 1 for a term of one text, 0 for one that all texts have equally often."""
    shares = counts.data / counts.sum(axis=0)[counts.indices]
    entropy = np.bincount(counts.indices, -shares * np.log(shares), minlength=counts.shape[1])
    return 1 - entropy / np.log(max(counts.shape[0], 2))


@register(
    "lsa",
    name="Latent semantic analysis",
    kind="fit",
    paper="Deerwester et al. 1990",
    source="M1[1] R25",
    year=1990,
    tiny={"dimensions": 20},
    deviations=(
        "Counts are weighted by log-entropy (Dumais 1991), which came after the paper and needs no list of stop words.",
        "Words of a single text are kept, which the paper leaves out.",
        "The paper searches; to classify, a linear SVM reads a text's coordinates, scaled to length 1.",
    ),
)
class LatentSemanticAnalysis(Estimator):
    """Texts in the space of the ``dimensions`` largest singular values of X ~ U S V^T, the matrix
    of terms by training texts.

    A cell of X is log2(1 + count) times the term's :func:`spread`. A text d is folded in as d^T U
    S^-1, which for a training text is its row of V. Texts are compared by the cosine of these rows
    scaled by S, as the paper compares documents. Of ranking the texts of both sides make X, each
    once, and no label is read: the score is the cosine of question and candidate. To classify, a
    linear SVM reads the same vectors. A singular vector's sign is arbitrary; its largest entry is
    made positive, so that all machines learn the same.
    """

    task_types = ("classify", "rank")

    def __init__(self, task_type: str, seed: int = 0, dimensions: int = 100, C: float = 1.0):
        super().__init__(seed)
        self.ranks = task_type == "rank"
        self.dimensions, self.C = dimensions, C

    @classmethod
    def memory_needed(cls, size: int, hyperparameters: dict[str, Any]) -> float:
        return (15.0 + 0.3 * hyperparameters["dimensions"]) * size

    def fit(self, train: Sequence[Row], dev: Sequence[Row], unlabelled: Sequence[Row] = ()) -> None:
        self.counter = ngram_counter(1)
        counts = sparse.csr_array(self.counter.fit_transform(self._documents(train)))
        self.weights = spread(counts)
        directions = min(self.dimensions, min(counts.shape) - 1)
        values, terms = largest_directions(self._weighted(counts), directions, self.seed)
        kept = values > SMALLEST * values.max()
        self.values, self.terms = values[kept], terms[kept].T
        self.parameter_count = self.weights.size + self.values.size + self.terms.size
        if not self.ranks:
            self.machine = LinearSVC(C=self.C, random_state=self.seed)
            self.machine.fit(self.coordinates([row["text"] for row in train]), [row["label"] for row in train])
            self.parameter_count += self.machine.coef_.size + self.machine.intercept_.size

    def _documents(self, train: Sequence[Row]) -> list[Text]:
        if not self.ranks:
            return [row["text"] for row in train]
        both = [row[side] for row in train for side in ("first", "second")]
        return list({tuple(lower_words(text)): text for text in both}.values())

    def _weighted(self, counts: sparse.csr_array) -> sparse.csr_array:
        return sparse.csr_array(counts.astype(float).log1p() / np.log(2) * self.weights)

    def fold_in(self, texts: Sequence[Text]) -> np.ndarray:
        """d^T U S^-1 of each text (N, dimensions); a word that training never showed is ignored."""
        return self._weighted(sparse.csr_array(self.counter.transform(texts))) @ self.terms / self.values

    def coordinates(self, texts: Sequence[Text]) -> np.ndarray:
        """Vectors of the texts (N, dimensions), of length 1, whose products are the cosines; zero
        for a text without a known word."""
        return normalize(self.fold_in(texts) * self.values)

    def predict(self, rows: Sequence[Row]) -> list[Any]:
        if self.ranks:
            first, second = (self.coordinates([row[side] for row in rows]) for side in ("first", "second"))
            return (first * second).sum(axis=1).tolist()
        return self.machine.predict(self.coordinates([row["text"] for row in rows])).tolist()

    def word_vectors(self) -> Mapping[str, np.ndarray]:
        """The rows of U S, whose products are those of the terms' rows in the reduced X."""
        return dict(zip(self.counter.get_feature_names_out().tolist(), self.terms * self.values, strict=True))

    def fitted_state(self) -> dict[str, Any]:
        state = {"words": self.counter.get_feature_names_out(), "weights": self.weights}
        state |= {"values": self.values, "terms": self.terms}
        return state if self.ranks else state | linear_machine.learnt(self.machine)

    def restore_fitted(self, state: dict[str, Any]) -> None:
        self.counter = ngram_counter(1, vocabulary=state["words"])
        self.weights, self.values, self.terms = (state[name] for name in ("weights", "values", "terms"))
        if not self.ranks:
            self.machine = linear_machine.restored(state)
