"""TextRank: words and sentences by their importance in a graph of their text."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.svm import LinearSVC

from architectures.blocks import linear_machine
from architectures.blocks.content_words import content_words
from harness.kinds import Estimator
from harness.registry import register
from harness.task import Row
from harness.views.base import Text


def importance(weights: np.ndarray, damping: float, tolerance: float) -> np.ndarray:
    """S(i) = (1 - damping) + damping * sum over j of w_ji / (sum over k of w_jk) S(j) of each
    vertex (N,), of the ``weights`` (N, N) of an undirected graph.

    All start at 1, and the last step changes none by ``tolerance`` or more.
    """
    shares = weights / np.where(weights.any(axis=0), weights.sum(axis=0), 1.0)
    scores, change = np.ones(len(weights)), math.inf
    while change >= tolerance:
        before = scores
        scores = (1 - damping) + damping * shares @ scores
        change = np.abs(scores - before).max(initial=0.0)
    return scores


def neighbours(words: Sequence[str], window: int) -> tuple[list[str], np.ndarray]:
    """The different words (N), and 1 where two of them stand within ``window`` words (N, N)."""
    names, places = np.unique(np.array(words, dtype=str), return_inverse=True)
    together = np.zeros((len(names), len(names)))
    for gap in range(1, window):
        together[places[:-gap], places[gap:]] = 1
    together = np.maximum(together, together.T)
    np.fill_diagonal(together, 0)
    return names.tolist(), together


def similarity(first: Sequence[str], second: Sequence[str]) -> float:
    """Number of words that both sentences have over the sum of the logarithms of their lengths; 0
    for two of one word each."""
    lengths = math.log(max(len(first), 1)) + math.log(max(len(second), 1))
    return len({*first} & {*second}) / lengths if lengths else 0.0


@register(
    "textrank",
    name="TextRank",
    kind="fit",
    paper="Mihalcea & Tarau 2004",
    source="M2.7[100]",
    year=2004,
    deviations=(
        "Without a tagger all words but scikit-learn's stop words and marks are vertices, not nouns and adjectives.",
        "Keywords that stand side by side are not joined to one.",
        "The paper extracts: a linear SVM above the keywords, with C = 1, is what makes classes of them.",
        "To rank, the question is one more sentence of the text that its candidates make.",
        "The window is over the words that are left; in a re-implementation over all words.",
    ),
)
class TextRank(Estimator):
    """A linear SVM on a text's keywords, each counted as often as it occurs times its
    :func:`importance`; candidate answers by their own importance.

    Keywords are the third of a text's words with the most importance in the graph whose edges join
    words within a ``window`` of words, stop words left out before. The edges between sentences
    weigh their :func:`similarity`. A candidate is ranked in the graph of its question and of all
    candidates that are asked for together with it: alone with the question it would be as important
    as any other.
    """

    task_types = ("classify", "rank")

    def __init__(
        self,
        task_type: str,
        seed: int = 0,
        window: int = 2,
        damping: float = 0.85,
        tolerance: float = 1e-4,
        C: float = 1.0,
    ):
        super().__init__(seed)
        self.ranks = task_type == "rank"
        self.window, self.damping, self.tolerance, self.C = window, damping, tolerance, C

    def fit(self, train: Sequence[Row], dev: Sequence[Row], unlabelled: Sequence[Row] = ()) -> None:
        if self.ranks:
            return
        known = {word for row in train for word in self.keywords(row["text"])}
        self.places = {word: place for place, word in enumerate(sorted(known))}
        self.machine = LinearSVC(C=self.C, random_state=self.seed)
        self.machine.fit(self.features(train), [row["label"] for row in train])
        self.parameter_count = self.machine.coef_.size + self.machine.intercept_.size

    def keywords(self, text: Text) -> dict[str, float]:
        """The most important third of a text's words, at least one, each with its count times its
        importance; the first in the alphabet of words that are equal."""
        words = content_words(text)
        names, together = neighbours(words, self.window)
        scores = importance(together, self.damping, self.tolerance)
        best = np.argsort(-scores, kind="stable")[: math.ceil(len(names) / 3)]
        counts = Counter(words)
        return {names[place]: counts[names[place]] * float(scores[place]) for place in best}

    def features(self, rows: Sequence[Row]) -> sparse.csr_array:
        """Keywords of the rows' texts (N, V); one that is no keyword of a training text is
        ignored."""
        found = [self.keywords(row["text"]) for row in rows]
        cells = [(self.places[word], value) for text in found for word, value in text.items() if word in self.places]
        columns, values = np.array([place for place, _ in cells], np.int32), np.array([value for _, value in cells])
        ends = np.cumsum([0, *(len(text.keys() & self.places.keys()) for text in found)], dtype=np.int32)
        return sparse.csr_array((values, columns, ends), shape=(len(rows), len(self.places)))

    def predict(self, rows: Sequence[Row]) -> list[Any]:
        if not self.ranks:
            return self.machine.predict(self.features(rows)).tolist()
        asked = [(row["group"], tuple(content_words(row["first"]))) for row in rows]
        candidates = [tuple(content_words(row["second"])) for row in rows]
        groups: dict[Any, set[tuple[str, ...]]] = {}
        for question, candidate in zip(asked, candidates, strict=True):
            groups.setdefault(question, set()).add(candidate)
        scores = {question: self._importances(question[1], sorted(those)) for question, those in groups.items()}
        return [scores[question][candidate] for question, candidate in zip(asked, candidates, strict=True)]

    def _importances(self, question: tuple[str, ...], candidates: list[tuple[str, ...]]) -> dict[Any, float]:
        sentences = [question, *candidates]
        weights = np.array([[similarity(one, other) for other in sentences] for one in sentences])
        np.fill_diagonal(weights, 0)
        scores = importance(weights, self.damping, self.tolerance)
        return dict(zip(candidates, scores[1:].tolist(), strict=True))

    def fitted_state(self) -> dict[str, Any]:
        if self.ranks:
            return {}
        return {"places": self.places} | linear_machine.learnt(self.machine)

    def restore_fitted(self, state: dict[str, Any]) -> None:
        if not self.ranks:
            self.places = state["places"]
            self.machine = linear_machine.restored(state)
