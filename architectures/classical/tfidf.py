"""Linear classifiers on TF-IDF: references, which are of no paper and which everybody compares
with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit, softmax
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.svm import LinearSVC

from architectures.blocks.ngrams import lower_words
from harness.kinds import Estimator, Prediction
from harness.metrics.label_sets import chosen
from harness.problems.base import Answer, with_probability
from harness.problems.multilabel import probable
from harness.registry import register
from harness.task import Row
from harness.views.base import Text, plain

LOGISTIC = "logistic regression"
MACHINES: dict[str, Callable[[float, int], Any]] = {
    LOGISTIC: lambda C, seed: LogisticRegression(C=C, max_iter=1000),
    "svm": lambda C, seed: LinearSVC(C=C, random_state=seed),
    "ridge": lambda C, seed: RidgeClassifier(alpha=1 / (2 * C)),
}
"""Linear classifiers by name, from C, the weight of the errors against that of the penalty, and a
seed."""

UNITS: dict[str, dict[str, Any]] = {
    "words": {"tokenizer": lower_words, "token_pattern": None, "lowercase": False, "ngram_range": (1, 2)},
    "characters": {
        "preprocessor": lambda text: plain(text).lower(),
        "analyzer": "char_wb",
        "ngram_range": (2, 5),
    },
}
"""Terms by name: words and pairs of neighbours, or runs of 2 to 5 characters within a word and the
spaces around it."""


def clearly_behind(differences: np.ndarray) -> bool:
    """True if the mean of the differences of the same rows is above half its standard error."""
    return bool(differences.mean() > 0.5 * differences.std() / len(differences) ** 0.5)


@register(
    "tfidf_logreg",
    name="reference: TF-IDF, logistic regression",
    kind="fit",
    paper="none",
    source="reference",
    year=0,
    version=3,
    hyperparameters={"machine": "logistic regression"},
    variants={
        "tfidf_svm": {
            "name": "reference: TF-IDF, linear SVM",
            "hyperparameters": {"machine": "svm", "strengths": [0.03, 0.1, 0.3, 1.0, 3.0]},
        },
        "tfidf_ridge": {
            "name": "reference: TF-IDF, ridge",
            "hyperparameters": {"machine": "ridge", "strengths": [0.03, 0.1, 0.3, 1.0, 3.0]},
        },
        "tfidf_char_logreg": {
            "name": "reference: TF-IDF of characters, logistic regression",
            "hyperparameters": {"machine": "logistic regression", "unit": "characters"},
        },
        "tfidf_char_svm": {
            "name": "reference: TF-IDF of characters, linear SVM",
            "hyperparameters": {"machine": "svm", "unit": "characters", "strengths": [0.03, 0.1, 0.3, 1.0, 3.0]},
        },
    },
)
class TfIdf(Estimator):
    """A linear classifier on the TF-IDF of a text's terms, scaled to length 1.

    A term t that a text has n times weighs (1 + log n) (1 + log((1 + N) / (1 + N_t))), N_t of the N
    training texts having it; one of fewer than ``min_count`` texts is left out. Of the
    ``strengths`` C that is kept which does best on dev; without dev it is ``C``. Best is, where
    logistic regression tells classes, the highest probability of the right ones. Else it is the
    quality of what is said, which a few rows turn: the smallest C is kept of those that are behind
    by at most half the standard error of the difference (as Breiman et al. 1984, who take one for
    the sizes of trees). The SVM and ridge set each class against the rest, and where texts have
    several labels every machine does: there a label is said whose margin is positive, and the
    margin's sigmoid stands for its probability, which it is of logistic regression alone.
    """

    task_types = ("classify", "multilabel")
    from_dev = ("weights", "biases")  # by their strength

    def __init__(
        self,
        task_type: str,
        seed: int = 0,
        machine: str = LOGISTIC,
        unit: str = "words",
        min_count: int = 2,
        strengths: Sequence[float] = (0.3, 1.0, 3.0, 10.0, 30.0),
        C: float = 1.0,
    ):
        super().__init__(seed)
        for name, value, known in (("machine", machine, MACHINES), ("unit", unit, UNITS)):
            if value not in known:
                raise ValueError(f"{name}={value!r} is none of {', '.join(known)}")
        self.task_type, self.machine, self.unit, self.min_count = task_type, machine, unit, min_count
        self.strengths, self.C = sorted(strengths), C

    @classmethod
    def memory_needed(cls, size: int, hyperparameters: dict[str, Any]) -> float:
        return (100.0 if hyperparameters["unit"] == "characters" else 30.0) * size

    def terms(self, **settings: Any) -> TfidfVectorizer:
        """Weighs the terms of texts."""
        return TfidfVectorizer(sublinear_tf=True, **UNITS[self.unit], **settings)

    def texts(self, rows: Sequence[Row]) -> list[Text]:
        """The texts whose terms are counted."""
        return [row["text"] for row in rows]

    def features(self, rows: Sequence[Row]) -> sparse.csr_array:
        """The numbers that the machine reads of each row (N, features)."""
        return self.joined(self.vectorizer.transform(self.texts(rows)))

    def joined(self, weighed: sparse.csr_array) -> sparse.csr_array:
        """The features of rows from the TF-IDF of :meth:`texts`."""
        return weighed

    def fit(self, train: Sequence[Row], dev: Sequence[Row], unlabelled: Sequence[Row] = ()) -> None:
        answers, texts = self._answers(train), self.texts(train)
        self.vectorizer = self.terms(min_df=min(self.min_count, len(texts)))
        features = self.joined(self.vectorizer.fit_transform(texts))
        found = {C: self._separate(features, answers, C) for C in (self.strengths if dev else [self.C])}
        self.strength = self.C
        if dev:
            asked = self.features(dev)
            self.evidence = {C: self._evidence(self._margins(asked, *learnt), dev) for C, learnt in found.items()}
            self.strength = self._best_of(self.evidence)
        self.weights, self.biases = found[self.strength]
        self.parameter_count = self.vectorizer.idf_.size + self.weights.size + self.biases.size

    def _answers(self, train: Sequence[Row]) -> list[np.ndarray]:
        """The answers (N,) that a machine learns, for each: the labels, or of sets of labels, for
        each label, which texts have it."""
        if self.task_type == "multilabel":
            self.classes = np.unique([label for row in train for label in row["labels"]])
            answers = [np.array([label in row["labels"] for row in train]) for label in self.classes]
        else:
            answers = [np.array([row["label"] for row in train])]
            self.classes = np.unique(answers[0])
        for name, each in zip(self.classes.tolist(), answers, strict=False):
            if (each == each[0]).all():
                raise ValueError(f"a classifier separates classes, and all {len(train)} training rows are {name!r}")
        return answers

    def _separate(
        self, features: sparse.csr_array, answers: Sequence[np.ndarray], C: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Weights (machines, features) and biases (machines,) of a machine for each of the
        answers; one that sets some classes against the rest counts as several."""
        fitted = [MACHINES[self.machine](C, self.seed).fit(features, each) for each in answers]
        return np.vstack([each.coef_ for each in fitted]), np.hstack([each.intercept_ for each in fitted])

    def _margins(self, features: sparse.csr_array, weights: np.ndarray, biases: np.ndarray) -> np.ndarray:
        return features @ weights.T + biases

    def margins(self, rows: Sequence[Row]) -> np.ndarray:
        """Scores of each row (N, machines): of two classes the second one's alone."""
        return self._margins(self.features(rows), self.weights, self.biases)

    def _said(self, margins: np.ndarray) -> list[Prediction]:
        """Predictions from margins (N, machines)."""
        if self.task_type == "multilabel":
            shares = expit(margins).round(6).tolist()
            return [probable(dict(zip(self.classes.tolist(), row, strict=True))) for row in shares]
        if self.task_type == "rank":
            return margins[:, 0].tolist()
        best = margins.argmax(axis=1) if margins.shape[1] > 1 else (margins[:, 0] > 0).astype(int)
        return self.classes[best].tolist()

    def _shares(self, margins: np.ndarray) -> np.ndarray:
        """The probability of each class (N, classes) by logistic regression."""
        return softmax(np.hstack([np.zeros_like(margins), margins]) if margins.shape[1] == 1 else margins, axis=1)

    @property
    def _tells_classes(self) -> bool:
        """True where it has a probability of each class."""
        return self.machine == LOGISTIC and self.task_type == "classify"

    def _evidence(self, margins: np.ndarray, dev: Sequence[Row]) -> np.ndarray:
        """The evidence of each row, or question, for margins (N, machines): of classes by logistic
        regression the log probability of the right one, else the :meth:`quality` of what is said.

        A few hundred rows have one accuracy by many strengths, and seldom one probability.
        """
        if not self._tells_classes:
            return self.quality(self._said(margins), dev)
        place = {label: number for number, label in enumerate(self.classes.tolist())}
        known = [(row, place[each["label"]]) for row, each in enumerate(dev) if each["label"] in place]
        logs = np.log(np.maximum(self._shares(margins), np.finfo(float).tiny))
        return np.array([logs[at] for at in known] or [0.0])

    def quality(self, said: Sequence[Prediction], dev: Sequence[Row]) -> np.ndarray:
        """1 for each row whose label is right; the average precision of each question that is
        ranked; the micro F1 of all sets of labels."""
        if self.task_type == "rank":
            from harness.metrics.ranking import average_precision, questions  # evaluate takes seconds to import

            right = [int(row["label"]) for row in dev]
            asked = questions(said, right, [row["group"] for row in dev])
            return np.array([*map(average_precision, asked)] or [0.0])  # no question with a right candidate
        if self.task_type == "multilabel":
            pairs = [(chosen(ours), {*row["labels"]}) for ours, row in zip(said, dev, strict=True)]
            sizes = sum(len(ours) + len(theirs) for ours, theirs in pairs)
            return np.array([sum(2 * len(ours & theirs) for ours, theirs in pairs) / max(sizes, 1)])
        return np.array([ours == row["label"] for ours, row in zip(said, dev, strict=True)], dtype=float)

    def _best_of(self, evidence: dict[float, np.ndarray]) -> float:
        """The strength that is kept by the evidence of each on the same rows."""
        best = max(evidence, key=lambda C: evidence[C].mean())
        equals = [C for C in evidence if not clearly_behind(evidence[best] - evidence[C])]
        return best if self._tells_classes else min(equals)

    def chosen_on_dev(self) -> dict[str, Any]:
        return {"C": self.strength}

    def chosen_with(self, *others: TfIdf) -> dict[str, Any]:
        every = [self, *others]
        return {"C": self._best_of({C: np.concatenate([each.evidence[C] for each in every]) for C in self.evidence})}

    def predict(self, rows: Sequence[Row]) -> list[Prediction]:
        return self._said(self.margins(rows))

    def answers(self, rows: Sequence[Row]) -> list[Answer]:
        """With probabilities from logistic regression; the margins of the others are none."""
        margins = self.margins(rows)
        said = self._said(margins)
        if self.machine != LOGISTIC or self.task_type == "multilabel":  # whose predictions have them
            return with_probability(said)
        shares = self._shares(margins)
        if self.task_type == "rank":
            return with_probability(said, shares[:, 1].tolist())
        by_class = [dict(zip(self.classes.tolist(), row, strict=True)) for row in shares.tolist()]
        sure = with_probability(said, shares.max(axis=1).tolist())
        return [answer | {"probabilities": row} for answer, row in zip(sure, by_class, strict=True)]

    def fitted_state(self) -> dict[str, Any]:
        terms = {"terms": self.vectorizer.get_feature_names_out(), "idf": self.vectorizer.idf_}
        return terms | {"classes": self.classes, "weights": self.weights, "biases": self.biases}

    def restore_fitted(self, state: dict[str, Any]) -> None:
        self.vectorizer = self.terms(vocabulary=state["terms"])
        self.vectorizer.idf_ = state["idf"]
        self.classes, self.weights, self.biases = state["classes"], state["weights"], state["biases"]


@register(
    "tfidf_pair_logreg",
    name="reference: TF-IDF of both texts, logistic regression",
    kind="fit",
    paper="none",
    source="reference",
    year=0,
    version=3,
    hyperparameters={"strengths": [0.1, 0.3, 1.0, 3.0]},
    variants={
        "tfidf_pair_svm": {
            "name": "reference: TF-IDF of both texts, linear SVM",
            "hyperparameters": {"machine": "svm", "strengths": [0.03, 0.1, 0.3, 1.0]},
        },
        "tfidf_pair_ridge": {
            "name": "reference: TF-IDF of both texts, ridge",
            "hyperparameters": {"machine": "ridge", "strengths": [0.03, 0.1, 0.3, 1.0]},
        },
        "tfidf_pair_char_logreg": {
            "name": "reference: TF-IDF of characters of both texts, logistic regression",
            "hyperparameters": {"unit": "characters", "strengths": [0.1, 0.3, 1.0, 3.0]},
        },
        "tfidf_pair_char_svm": {
            "name": "reference: TF-IDF of characters of both texts, linear SVM",
            "hyperparameters": {"machine": "svm", "unit": "characters", "strengths": [0.03, 0.1, 0.3, 1.0]},
        },
    },
)
class PairTfIdf(TfIdf):
    r"""As :class:`TfIdf`, on u and v, the TF-IDF of the first and of the second text, side by side,
    on that of the terms that they share, min(u, v), on their difference, \|u - v\|, and on the
    cosine u v.

    Both texts' terms are counted together. To rank, the score is the logit of a right candidate, or
    by another machine the margin.
    """

    task_types = ("match", "rank")

    @classmethod
    def memory_needed(cls, size: int, hyperparameters: dict[str, Any]) -> float:
        return 2 * super().memory_needed(size, hyperparameters)

    def texts(self, rows: Sequence[Row]) -> list[Text]:
        """The first texts of all rows, behind them the second ones."""
        return [row[side] for side in ("first", "second") for row in rows]

    def joined(self, weighed: sparse.csr_array) -> sparse.csr_array:
        u, v = weighed[: weighed.shape[0] // 2], weighed[weighed.shape[0] // 2 :]
        cosine = sparse.csr_array(u.multiply(v).sum(axis=1).reshape(-1, 1))
        return sparse.csr_array(sparse.hstack([u, v, u.minimum(v), abs(u - v), cosine]))
