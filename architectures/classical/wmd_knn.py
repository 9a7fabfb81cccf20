"""Nearest neighbours by the word mover's distance: the least cost of moving one text's words to
another's."""

from __future__ import annotations

import math
from bisect import insort
from collections import Counter
from collections.abc import Mapping, Sequence
from operator import eq
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment, linprog
from scipy.spatial.distance import cdist

from architectures.blocks.content_words import content_words
from architectures.blocks.corpus_graph import count_pairs, positive_pmi
from architectures.blocks.singular_vectors import largest_directions
from harness.kinds import Estimator
from harness.ragged import Ragged
from harness.registry import register
from harness.task import Row
from harness.views.base import Text

if TYPE_CHECKING:
    from harness.saved_models.model import KeptModel

MOST_UNITS = 200
"""Units of mass up to which an assignment of units is faster than the linear programme."""
CHOSEN_ON = 300
"""Texts of dev, about, on which the number of neighbours is chosen: each takes some programmes."""


def transport(first: np.ndarray, second: np.ndarray, costs: np.ndarray) -> float:
    """Least sum of T * ``costs`` (n, m) over T >= 0 whose rows sum to the shares of the counts
    ``first`` (n,), and whose columns to those of ``second`` (m,).

    Both texts are cut into equal units where few are enough: then the best T moves whole ones.
    """
    unit = math.lcm(int(first.sum()), int(second.sum()))
    if unit <= MOST_UNITS:
        cut = [np.repeat(np.arange(len(side)), side * (unit // int(side.sum()))) for side in (first, second)]
        moves = costs[np.ix_(*cut)]
        return float(moves[linear_sum_assignment(moves)].mean())
    n, m = costs.shape
    rows = sparse.kron(sparse.eye_array(n), np.ones((1, m)))
    columns = sparse.kron(np.ones((1, n)), sparse.eye_array(m), format="csr")[:-1]  # the last one follows
    shares = np.concatenate([first / first.sum(), second[:-1] / second.sum()])
    return float(linprog(costs.ravel(), A_eq=sparse.vstack([rows, columns], format="csr"), b_eq=shares).fun)


def vote(labels: Sequence[str]) -> str:
    """The commonest of the labels of neighbours, the nearest first; where two are as common, that
    of fewer neighbours."""
    (best, count), *others = Counter(labels).most_common(2)
    return vote(labels[:-1]) if others and others[0][1] == count else best


@register(
    "wmd_knn",
    name="Word mover's distance k-NN",
    kind="fit",
    paper="Kusner et al. 2015",
    source="M-T2[221]",
    year=2015,
    tiny={"neighbours": (1, 3), "prefetch": 3, "dimensions": 20},
    deviations=(
        "Without given vectors (--parent vectors=...) they are made of the training texts: the singular vectors, times"
        " the roots of their values, of the positive PMI of words in a window of 5; the paper has word2vec of news.",
        "k is the best on about 300 texts of dev of 1, 3, 5 and 7, not of 1 to 19 by cross-validation.",
        "Candidates come in the order of the relaxed distance, not of that of centroids.",
        "Of a text's neighbours the 16 nearest by the relaxed distance are measured; the paper goes on behind its"
        " prefetch as far as bounds allow, which is exact.",
        "The commonest label of k neighbours is the answer, where two are as common that of fewer; in the authors'"
        " program it must be that of half of them, or two neighbours fewer are asked.",
        "Stop words are scikit-learn's list.",
    ),
)
class WordMoversNeighbours(Estimator):
    """The commonest label among the k training texts of the least word mover's distance, k being
    one of ``neighbours``.

    The distance of two texts is the least cost (:func:`transport`) of moving the shares of one's
    words to those of the other's, a word to another at the Euclidean distance of their vectors.
    Stop words, marks and words without a vector are left out; a text without any other word has the
    commonest label of training. The relaxed distance, by which each word goes to the nearest of the
    other text, is never larger: training texts are tried in its order, until it is no less than the
    distance of the k-th best, but no more of them than ``prefetch``. No gradients, and no numbers
    learnt but the vectors: what is slow is the asking.
    """

    takes = ("vectors",)
    from_dev = ("k", "right")

    def __init__(
        self,
        seed: int = 0,
        neighbours: tuple = (1, 3, 5, 7),
        prefetch: int = 16,
        window: int = 5,
        dimensions: int = 100,
    ):
        super().__init__(seed)
        if min(neighbours, default=0) < 1:
            raise ValueError(f"neighbours={neighbours!r}: expected is a number of 1 at least, or several")
        self.neighbours, self.prefetch = sorted(neighbours), prefetch
        self.window, self.dimensions = window, dimensions
        self.given: Mapping[str, np.ndarray] = {}

    def inherit(self, role: str, parent: KeptModel, rows: Sequence[Row]) -> None:
        self.given = parent.word_vectors() or {}

    @classmethod
    def memory_needed(cls, size: int, hyperparameters: dict[str, Any]) -> float:
        return (90.0 + 0.2 * hyperparameters["dimensions"]) * size

    def fit(self, train: Sequence[Row], dev: Sequence[Row], unlabelled: Sequence[Row] = ()) -> None:
        texts = [content_words(row["text"]) for row in train]
        vectors = self.given or self._made_of(texts)
        self.places = {word: place for place, word in enumerate(vectors)}
        self.vectors = np.array(list(vectors.values()), dtype=float)
        self.given = {}  # as a table from now on
        counts = self.counts(texts)
        labels = [row["label"] for row in train]
        self.commonest = Counter(labels).most_common(1)[0][0]
        kept = np.flatnonzero(counts.sum(axis=1))
        self.texts, self.labels = counts[kept], [labels[place] for place in kept]
        some = dev[:: max(1, len(dev) // CHOSEN_ON)]
        found = [self.nearest(row["text"], self.neighbours[-1]) for row in some]
        answers = {k: [self._answer(near[:k]) for near in found] for k in self.neighbours}
        self.right = np.array([sum(map(eq, answers[k], (row["label"] for row in some))) for k in self.neighbours])
        self.k = self._best_of(self.right)
        self.parameter_count = self.vectors.size

    def _made_of(self, texts: Sequence[Sequence[str]]) -> dict[str, np.ndarray]:
        """Vectors of the words of the training texts, from the words beside them."""
        words = sorted({word for text in texts for word in text})
        places = {word: place for place, word in enumerate(words)}
        ids = Ragged.of([places[word] for word in text] for text in texts)
        pmi = sparse.csr_array(positive_pmi(*count_pairs(ids, len(words), self.window)))
        values, directions = largest_directions(pmi, min(self.dimensions, len(words) - 1), self.seed)
        made = pmi @ directions.T / np.sqrt(np.maximum(values, 1e-9))
        return dict(zip(words, made, strict=True))

    def counts(self, texts: Sequence[Sequence[str]]) -> sparse.csr_array:
        """Number of times that each text has each word with a vector (N, V)."""
        found = [Counter(self.places[word] for word in text if word in self.places) for text in texts]
        columns = np.array([place for text in found for place in sorted(text)], np.int32)
        values = np.array([text[place] for text in found for place in sorted(text)], np.int64)
        ends = np.cumsum([0, *map(len, found)], dtype=np.int32)
        return sparse.csr_array((values, columns, ends), shape=(len(texts), len(self.places)))

    def relaxed(self, words: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Distance to each training text (N,) of one with these words (n,) and their counts (n,),
        were each word free to go to the nearest of the other text: the larger of both ways."""
        costs = cdist(self.vectors[words], self.vectors)
        there = (
            counts / counts.sum() @ np.minimum.reduceat(costs[:, self.texts.indices], self.texts.indptr[:-1], axis=1)
        )
        back = self.texts @ costs.min(axis=0) / self.texts.sum(axis=1)
        return np.maximum(there, back)

    def nearest(self, text: Text, k: int) -> list[tuple[float, int]]:
        """Distances and numbers of the ``k`` nearest training texts, the nearest first; none for a
        text without a word that counts."""
        asked = self.counts([content_words(text)])
        words, counts, found = asked.indices, asked.data, []
        if not len(words) or not self.labels:
            return []
        bounds = self.relaxed(words, counts)
        for place in np.argsort(bounds, kind="stable")[: max(k, self.prefetch)].tolist():
            if len(found) == k and bounds[place] >= found[-1][0]:
                break
            begin, end = self.texts.indptr[place : place + 2]
            others = self.texts.indices[begin:end]
            costs = cdist(self.vectors[words], self.vectors[others])
            insort(found, (transport(counts, self.texts.data[begin:end], costs), place))
            del found[k:]
        return found

    def chosen_on_dev(self) -> dict[str, Any]:
        return {"neighbours": (self.k,)}

    def chosen_with(self, *others: WordMoversNeighbours) -> dict[str, Any]:
        return {"neighbours": (self._best_of(sum((each.right for each in others), self.right)),)}

    def _best_of(self, right: np.ndarray) -> int:
        """The number of neighbours with most right answers, of equals the smallest."""
        return self.neighbours[int(right.argmax())]

    def _answer(self, near: Sequence[tuple[float, int]]) -> str:
        return vote([self.labels[place] for _, place in near]) if near else self.commonest

    def predict(self, rows: Sequence[Row]) -> list[str]:
        return [self._answer(self.nearest(row["text"], self.k)) for row in rows]
