"""DeepMeSH: labels ranked by what classifiers and neighbours say of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import expit, logit
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC

from architectures.blocks.ngrams import lower_words
from architectures.classical.tfidf import UNITS
from architectures.feedforward.doc2vec import ParagraphVectors
from harness.kinds import Estimator, Prediction
from harness.problems.multilabel import probable
from harness.registry import register
from harness.task import Row

AT_ONCE = 500
"""Texts of which the neighbours are looked for together."""


class Documents(NamedTuple):
    """N texts: their TF-IDF (N, terms) and their learnt vectors (N, dims), rows of length 1, and
    whether they name each label (N, labels)."""

    weighed: sparse.csr_array
    learnt: np.ndarray
    named: np.ndarray

    def __getitem__(self, rows: Any) -> Documents:  # type: ignore[override]
        return Documents(self.weighed[rows], self.learnt[rows], self.named[rows])

    def joined(self) -> sparse.csr_array:
        """Both vectors side by side, of length 1 together: D2V-TFIDF."""
        return sparse.csr_array(sparse.hstack([self.weighed, sparse.csr_array(self.learnt)]) * 0.5**0.5)

    def cosines(self, others: Documents) -> list[np.ndarray]:
        """Cosines (N, M) of texts with others, by TF-IDF and by D2V-TFIDF."""
        weighed = (self.weighed @ others.weighed.T).toarray()
        return [weighed, (weighed + self.learnt @ others.learnt.T) / 2]


def classifier(features: Any, has: np.ndarray, C: float, seed: int) -> np.ndarray:
    """Weights and bias (features + 1,) of a linear SVM; of a label that no text has, or each, the
    bias alone."""
    if has.all() or not has.any():
        return np.append(np.zeros(features.shape[1]), 1.0 if has.all() else -1.0)
    machine = LinearSVC(C=C, random_state=seed).fit(features, has)
    return np.append(machine.coef_[0], machine.intercept_[0])


class Labelled(NamedTuple):
    """M labelled texts, which speak for labels: ``has`` (M, labels) is true at those that each has.
    The ``weights`` (labels, features + 1) are those of a classifier for each label, the bias last,
    by TF-IDF and by D2V-TFIDF."""

    documents: Documents
    has: np.ndarray
    weights: list[np.ndarray]

    @classmethod
    def of(cls, documents: Documents, has: np.ndarray, C: float, seed: int) -> Labelled:
        views = documents.weighed, documents.joined()
        return cls(documents, has, [np.array([classifier(each, of, C, seed) for of in has.T]) for each in views])

    def evidence(self, asked: Documents, neighbours: int) -> np.ndarray:
        """The evidence (N, labels, 6) of texts: the margins of both classifiers, the shares of both
        kinds of neighbours, the label's frequency, and whether the text names it."""
        parts = [asked[rows] for rows in _in_parts(len(asked.learnt))]
        return np.concatenate([self._evidence(part, neighbours) for part in parts])

    def _evidence(self, asked: Documents, neighbours: int) -> np.ndarray:
        features = (asked.weighed, asked.joined())
        margins = [x @ w[:, :-1].T + w[:, -1] for x, w in zip(features, self.weights, strict=True)]
        shares = [shares_of(cosines, self.has, neighbours) for cosines in asked.cosines(self.documents)]
        often = np.broadcast_to(self.has.mean(axis=0), margins[0].shape)
        return np.stack([*margins, *shares, often, asked.named], axis=2)


def _in_parts(count: int) -> list[slice]:
    return [slice(start, start + AT_ONCE) for start in range(0, max(count, 1), AT_ONCE)]


def shares_of(cosines: np.ndarray, has: np.ndarray, neighbours: int) -> np.ndarray:
    """For each label the share (N, labels) of the cosine of the nearest texts that have it, of
    cosines (N, M) with texts that have labels (M, labels)."""
    nearest = np.argsort(-cosines, axis=1, kind="stable")[:, :neighbours]
    weights = np.maximum(np.take_along_axis(cosines, nearest, axis=1), 0.0)
    totals = weights.sum(axis=1, keepdims=True)
    return (weights[:, :, None] * has[nearest]).sum(axis=1) / np.where(totals > 0, totals, 1.0)


class Trees(NamedTuple):
    """Gradient-boosted trees: the log-odds of all, and of each tree its nodes' two children (-1 for
    none), the feature that is compared with a threshold, and values, padded to equally many."""

    start: float
    children: np.ndarray
    features: np.ndarray
    thresholds: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, fitted: GradientBoostingClassifier) -> Trees:
        found = [each.tree_ for each in fitted.estimators_[:, 0]]
        most = max(each.node_count for each in found)

        def padded(values: Sequence[np.ndarray], filling: float) -> np.ndarray:
            return np.array([np.pad(v, (0, most - len(v)), constant_values=filling) for v in values])

        children = [padded([getattr(t, side) for t in found], -1) for side in ("children_left", "children_right")]
        start = float(logit(fitted.init_.class_prior_[1]))
        values = padded([fitted.learning_rate * t.value[:, 0, 0] for t in found], 0.0)
        features = padded([np.maximum(t.feature, 0) for t in found], 0)
        return cls(start, np.stack(children), features, padded([t.threshold for t in found], 0.0), values)

    def log_odds(self, evidence: np.ndarray) -> np.ndarray:
        """Log-odds (N,) of rows of evidence (N, features)."""
        rows, total = np.arange(len(evidence)), np.full(len(evidence), self.start)
        evidence = evidence.astype(np.float32)  # as the trees were learnt
        for left, right, feature, threshold, value in zip(*self.children, *self[2:], strict=True):
            node = np.zeros(len(evidence), dtype=int)
            while (left[node] >= 0).any():
                down = np.where(evidence[rows, feature[node]] <= threshold[node], left[node], right[node])
                node = np.where(left[node] >= 0, down, node)
            total += value[node]
        return total


@register(
    "deepmesh",
    name="DeepMeSH",
    kind="fit",
    paper="Peng et al. 2016",
    source="M2.3[65]",
    year=2016,
    tiny={"dims": 16, "trees": 10},
    deviations=(
        "The ranker is boosted trees that judge each label by itself; the paper's (LambdaMART) compares the labels of a"
        " text.",
        "Labels are few, so that all are candidates; the paper takes those of the best classifiers and neighbours among"
        " 27,000.",
        "Evidence from other systems, such as the National Library's, is left out.",
        "Where texts have one label, that of the highest rank is the answer, and no number is foretold.",
        "The number of labels is foretold by ridge regression on TF-IDF.",
        "Sizes, folds and strengths are our choices: those of the paper are unconfirmed.",
    ),
)
class DeepMeSH(Estimator):
    """Labels by the log-odds of boosted trees over their evidence for a text
    (:meth:`Labelled.evidence`).

    A text is its TF-IDF, and D2V-TFIDF, to which its paragraph vector is joined. The trees learn
    from the evidence that is found for the texts of each of the ``folds`` by those of the others:
    what a classifier says of its own training texts is too good. Of several labels as many are said
    as a regression foretells.
    """

    task_types = ("classify", "multilabel")

    def __init__(
        self,
        task_type: str,
        seed: int = 0,
        dims: int = 100,
        neighbours: int = 10,
        folds: int = 3,
        trees: int = 50,
        depth: int = 3,
        C: float = 1.0,
    ):
        super().__init__(seed)
        self.sets = task_type == "multilabel"
        self.dims, self.neighbours, self.folds, self.C = dims, neighbours, folds, C
        self.count, self.depth = trees, depth

    def prepare(self) -> None:
        self.paragraphs().prepare()

    def paragraphs(self) -> ParagraphVectors:
        """The learner of vectors of texts, which reads no labels."""
        return ParagraphVectors("rank", seed=self.seed, dims=self.dims)

    def terms(self, **settings: Any) -> TfidfVectorizer:
        """Weighs words and pairs of words."""
        return TfidfVectorizer(sublinear_tf=True, **UNITS["words"], **settings)

    def read(self, rows: Sequence[Row]) -> Documents:
        """Texts as their vectors."""
        texts = [row["text"] for row in rows]
        words = [{*lower_words(text)} for text in texts]
        named = np.array([[names <= own for names in self.names] for own in words], dtype=float)
        learnt = normalize(self.learner.text_vectors(texts))
        return Documents(sparse.csr_array(self.vectorizer.transform(texts)), learnt, named)

    @property
    def names(self) -> list[set[str]]:
        """The words of each label's name."""
        return [{*lower_words(label.replace("_", " ").replace(".", " "))} for label in self.labels]

    def fit(self, train: Sequence[Row], dev: Sequence[Row], unlabelled: Sequence[Row] = ()) -> None:
        sets = [row["labels"] if self.sets else [row["label"]] for row in train]
        self.labels = sorted({label for each in sets for label in each})
        has = np.array([[label in each for label in self.labels] for each in sets])
        if len(self.labels) < 2 or len(train) < self.folds:
            raise ValueError(
                f"{len(train)} training rows with {len(self.labels)} labels: two labels are needed at least, and a row"
                f" for each of {self.folds} folds"
            )
        self.learner, self.vectorizer = self.paragraphs(), self.terms(min_df=min(2, len(train)))
        self.learner.fit([{"first": row["text"], "second": row["text"]} for row in train], [])
        self.vectorizer.fit([row["text"] for row in train])
        documents = self.read(train)
        self.trees = self._ranker(documents, has)
        self.known = Labelled.of(documents, has, self.C, self.seed)
        ridge = Ridge().fit(documents.weighed, has.sum(axis=1))
        self.numbers = np.append(ridge.coef_, ridge.intercept_)
        self.parameter_count = sum(weights.size for weights in self.known.weights) + self.trees.values.size
        self.parameter_count += self.learner.parameter_count + self.vectorizer.idf_.size + self.numbers.size

    def _ranker(self, documents: Documents, has: np.ndarray) -> Trees:
        """Trees that learn which label is right from evidence that others than the text give."""
        fold = np.random.default_rng(self.seed).permutation(len(has)) % self.folds
        evidence = []
        for number in range(self.folds):
            others = Labelled.of(documents[fold != number], has[fold != number], self.C, self.seed)
            evidence.append(others.evidence(documents[fold == number], self.neighbours))
        right = np.concatenate([has[fold == number] for number in range(self.folds)]).ravel()
        boosted = GradientBoostingClassifier(n_estimators=self.count, max_depth=self.depth, random_state=self.seed)
        return Trees.of(boosted.fit(np.concatenate(evidence).reshape(len(right), -1), right))

    def scores(self, rows: Sequence[Row]) -> np.ndarray:
        """Log-odds (N, labels) of each label; of several, so that as many are above 0 as are
        foretold."""
        documents = self.read(rows)
        evidence = self.known.evidence(documents, self.neighbours)
        odds = self.trees.log_odds(evidence.reshape(-1, evidence.shape[2])).reshape(evidence.shape[:2])
        if not self.sets:
            return odds
        numbers = documents.weighed @ self.numbers[:-1] + self.numbers[-1]
        return odds - borders(odds, numbers.round().astype(int))[:, None]

    def predict(self, rows: Sequence[Row]) -> list[Prediction]:
        scores = self.scores(rows)
        if not self.sets:
            return [self.labels[best] for best in scores.argmax(axis=1)]
        return [probable(dict(zip(self.labels, row, strict=True))) for row in expit(scores).round(6).tolist()]

    def fitted_state(self) -> dict[str, Any]:
        known, documents = self.known, self.known.documents
        return {
            "labels": self.labels,
            "terms": self.vectorizer.get_feature_names_out(),
            "idf": self.vectorizer.idf_,
            "learner": self.learner.fitted_state(),
            "documents": list(documents),
            "has": known.has,
            "weights": known.weights,
            "trees": list(self.trees),
            "numbers": self.numbers,
            "parameter_count": self.parameter_count,
        }

    def restore_fitted(self, state: dict[str, Any]) -> None:
        self.labels, self.numbers, self.parameter_count = state["labels"], state["numbers"], state["parameter_count"]
        self.vectorizer = self.terms(vocabulary=state["terms"])
        self.vectorizer.idf_ = state["idf"]
        self.learner = self.paragraphs()
        self.learner.restore_fitted(state["learner"])
        self.known = Labelled(Documents(*state["documents"]), state["has"], state["weights"])
        self.trees = Trees(*state["trees"])


def borders(odds: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """For each text the number between the log-odds (N, labels) that are to be said and the others,
    where so many ``numbers`` (N,) are."""
    ordered = -np.sort(-odds, axis=1)
    ends = np.hstack([ordered[:, :1] + 2.0, ordered, ordered[:, -1:] - 2.0])
    places = numbers.clip(0, odds.shape[1])[:, None]
    return (np.take_along_axis(ends, places, 1) + np.take_along_axis(ends, places + 1, 1))[:, 0] / 2
