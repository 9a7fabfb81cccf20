"""Support vector machine on the difference of a word's TF-IDF in the two classes."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.svm import LinearSVC

from architectures.blocks.ngrams import ngram_counter
from harness import registry
from harness.kinds import Estimator
from harness.registry import Entry, register
from harness.task import Row


def delta_idf(counts: sparse.csr_array, positive: np.ndarray, smoothing: float) -> np.ndarray:
    r"""log2(\|P\| / P_t) - log2(\|N\| / N_t) of each term (V,), from its counts in the texts
    that are ``positive`` (N,) or not.

    \|P\| and \|N\| count the texts of the two classes, P_t and N_t those of them that have the
    term, plus ``smoothing``.
    """
    idfs = []
    for texts in (positive, ~positive):
        having = (counts[texts] > 0).sum(axis=0) + smoothing
        idfs.append(np.log2(texts.sum() / having))
    return idfs[0] - idfs[1]


@functools.cache
def classes_of(task: Entry) -> int:
    """Number of classes of a classification task, from its mini rows."""
    return len({row["label"] for row in registry.load(task)(task).mini("train")})


@register(
    "delta_tfidf",
    name="Delta TF-IDF + SVM",
    kind="fit",
    paper="Martineau & Finin 2009",
    source="M-T1[215]",
    year=2009,
    deviations=(
        "Half a text is added to each document frequency, so that a term of one class alone has a finite weight.",
        "Words and pairs of words, squared hinge loss and C = 1, as in nbsvm: we could not check what the paper had.",
    ),
)
class DeltaTfIdf(Estimator):
    r"""A linear SVM on count(t, d) * (log2(\|P\| / P_t) - log2(\|N\| / N_t)): a term's TF-IDF
    among positive minus among negative texts.

    A term as common in both classes weighs nothing, whatever its frequency; terms of negative texts
    have positive features.
    """

    def __init__(self, seed: int = 0, ngrams: int = 2, smoothing: float = 0.5, C: float = 1.0):
        super().__init__(seed)
        self.ngrams, self.smoothing, self.C = ngrams, smoothing, C

    @classmethod
    def unfit(cls, task: Entry, hyperparameters: dict[str, Any]) -> str | None:
        if reason := super().unfit(task, hyperparameters):
            return reason
        try:
            found = classes_of(task)
        except (
            NotImplementedError
        ):  # a task without mini rows shows its classes in training only, where fit refuses too many
            return None
        return None if found == 2 else f"weighs words by the difference of two classes, and {task.id} has {found}"

    def fit(self, train: Sequence[Row], dev: Sequence[Row], unlabelled: Sequence[Row] = ()) -> None:
        labels = np.array([row["label"] for row in train])
        self.classes = np.unique(labels)
        if len(self.classes) != 2:
            raise ValueError(
                f"delta_tfidf needs texts of two classes to train on, and found {', '.join(self.classes.tolist())}"
            )
        self.counter = ngram_counter(self.ngrams)
        counts = sparse.csr_array(self.counter.fit_transform([row["text"] for row in train]))
        positive = labels == self.classes[1]
        self.weights = delta_idf(counts, positive, self.smoothing)
        self.machine = LinearSVC(C=self.C, random_state=self.seed).fit(counts * self.weights, positive)
        self.parameter_count = self.weights.size + self.machine.coef_.size + 1

    def features(self, rows: Sequence[Row]) -> sparse.csr_array:
        """Delta TF-IDF of the rows' texts (N, V); a term that training never showed is ignored."""
        return sparse.csr_array(self.counter.transform([row["text"] for row in rows])) * self.weights

    def predict(self, rows: Sequence[Row]) -> list[str]:
        return self.classes[self.machine.predict(self.features(rows)).astype(int)].tolist()

    def fitted_state(self) -> dict[str, Any]:
        machine = self.machine
        learnt = {"sides": machine.classes_, "coefficients": machine.coef_, "intercept": machine.intercept_}
        ngrams = self.counter.get_feature_names_out()
        return learnt | {"ngrams": ngrams, "classes": self.classes, "weights": self.weights}

    def restore_fitted(self, state: dict[str, Any]) -> None:
        self.counter = ngram_counter(self.ngrams, vocabulary=state["ngrams"])
        self.classes, self.weights = state["classes"], state["weights"]
        self.machine = machine = LinearSVC(C=self.C, random_state=self.seed)
        machine.classes_, machine.coef_, machine.intercept_ = state["sides"], state["coefficients"], state["intercept"]
