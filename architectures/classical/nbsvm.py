"""Support vector machine on naive Bayes features."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse
from sklearn.svm import LinearSVC

from architectures.blocks.ngrams import ngram_counter
from harness.kinds import Estimator
from harness.registry import register
from harness.task import Row


def log_count_ratio(features: sparse.csr_array, positive: np.ndarray, smoothing: float) -> np.ndarray:
    """r = log((p / |p|) / (q / |q|)) of each feature (V,), p and q its smoothed counts in the texts
    that are ``positive`` (N,) or not."""
    logs = []
    for texts in (positive, ~positive):
        counts = smoothing + features[texts].sum(axis=0)
        logs.append(np.log(counts / counts.sum()))
    return logs[0] - logs[1]


@register(
    "nbsvm",
    name="SVM with naive Bayes features",
    kind="fit",
    paper="Wang & Manning 2012",
    source="M-T1[31]",
    year=2012,
    version=2,
    deviations=("The paper separates two classes; of more, each is set against the rest.",),
)
class NaiveBayesSVM(Estimator):
    r"""A linear SVM (squared hinge) on the n-grams that a text has, each scaled by its log-count
    ratio; one class against the rest.

    A class's ratio r is :func:`log_count_ratio`; its SVM, with weights w, reads r * f of the binary
    features f. Its score of a text is the SVM's with w' = (1 - ``beta``) * mean(\|w\|) + ``beta``
    * w instead of w, the mean being over the vocabulary: ``beta`` 1 is the SVM, 0 is naive Bayes up
    to a factor and without the prior. As in the authors' code the SVM has no intercept: one that
    fits w does not fit w', and of many unbalanced classes the rarest would win.
    """

    def __init__(self, seed: int = 0, ngrams: int = 2, smoothing: float = 1.0, C: float = 1.0, beta: float = 0.25):
        super().__init__(seed)
        self.ngrams, self.smoothing, self.C, self.beta = ngrams, smoothing, C, beta

    def fit(self, train: Sequence[Row], dev: Sequence[Row], unlabelled: Sequence[Row] = ()) -> None:
        labels = np.array([row["label"] for row in train])
        self.classes = np.unique(labels)
        if len(self.classes) < 2:
            raise ValueError(
                f"nbsvm separates classes, and all {len(train)} training texts are"
                f" {', '.join(map(repr, self.classes.tolist()))}"
            )
        self.counter = ngram_counter(self.ngrams, binary=True, dtype=np.float64)
        features = sparse.csr_array(self.counter.fit_transform([row["text"] for row in train]))
        # Of two classes each is the other's rest: one machine, with its sign turned, serves both.
        separated = self.classes if len(self.classes) > 2 else self.classes[1:]
        self.weights = np.stack([self._separate(features, labels == name) for name in separated], axis=1)
        self.parameter_count = self.weights.size

    def _separate(self, features: sparse.csr_array, positive: np.ndarray) -> np.ndarray:
        """Weights of the binary features (V,) that are high for the positive texts."""
        ratio = log_count_ratio(features, positive, self.smoothing)
        machine = LinearSVC(loss="squared_hinge", C=self.C, fit_intercept=False, random_state=self.seed)
        weights = machine.fit(features * ratio, positive).coef_[0]
        return ratio * ((1 - self.beta) * np.abs(weights).mean() + self.beta * weights)

    def scores(self, rows: Sequence[Row]) -> np.ndarray:
        """Score of each class for each row (N, classes); of two classes the second one's alone (N,
        1)."""
        return self.counter.transform([row["text"] for row in rows]) @ self.weights

    def predict(self, rows: Sequence[Row]) -> list[str]:
        scores = self.scores(rows)
        best = scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(int)
        return self.classes[best].tolist()

    def fitted_state(self) -> dict:
        return {"ngrams": self.counter.get_feature_names_out(), "classes": self.classes, "weights": self.weights}

    def restore_fitted(self, state: dict) -> None:
        self.counter = ngram_counter(self.ngrams, binary=True, dtype=np.float64, vocabulary=state["ngrams"])
        self.classes, self.weights = state["classes"], state["weights"]
