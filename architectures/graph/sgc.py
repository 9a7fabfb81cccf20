"""Simplified graph convolution on TextGCN's graph: propagation without layers, then logistic
regression."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import log_softmax

from architectures.blocks.corpus_graph import TextGraph
from harness.kinds import Estimator
from harness.registry import register
from harness.task import Row


class Propagated:
    """The rows S^K X of some texts, X = I and S symmetric, as a linear map: these dense features
    (texts, nodes) are never formed."""

    def __init__(self, graph: sparse.csr_array, places: np.ndarray, power: int):
        self.graph, self.rows, self.power = graph, graph[places], power

    def __matmul__(self, weights: np.ndarray) -> np.ndarray:
        """Scores (texts, classes) under weights (nodes, classes)."""
        for _ in range(self.power - 1):
            weights = self.graph @ weights
        return self.rows @ weights

    def back(self, errors: np.ndarray) -> np.ndarray:
        """The transposed product with errors (texts, classes): (nodes, classes)."""
        weights = self.rows.T @ errors
        for _ in range(self.power - 1):
            weights = self.graph @ weights
        return weights


def logistic_regression(features: Propagated, gold: np.ndarray, penalty: float) -> np.ndarray:
    """Weights (nodes, classes), without a bias, of the least mean cross-entropy plus penalty / 2
    times their squares, by L-BFGS.

    ``gold`` (texts, classes) is 1 at a text's class and 0 elsewhere.
    """
    shape = features.graph.shape[0], gold.shape[1]

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        weights = flat.reshape(shape)
        scores = log_softmax(features @ weights, axis=1)
        slope = features.back((np.exp(scores) - gold) / len(gold)) + penalty * weights
        return -(scores * gold).sum() / len(gold) + penalty / 2 * (flat @ flat), slope.ravel()

    # Features are about 1e-3, and so are slopes far from the minimum: the usual limits would stop
    # at once. The smallest penalties take hundreds of steps: one that is stopped is a penalty more.
    limits = {"maxiter": 20_000, "maxfun": 30_000, "gtol": 1e-8, "ftol": 1e-12}
    return minimize(loss, np.zeros(shape[0] * shape[1]), jac=True, method="L-BFGS-B", options=limits).x.reshape(shape)


@register(
    "sgc",
    name="Simplified graph convolution",
    kind="fit",
    paper="Wu et al. 2019",
    source="M2.7[108] T2",
    year=2019,
    sees=("texts of test",),
    version=2,
    deviations=(
        "TRANSDUCTIVE, as in the paper: the test texts, without their labels, are in its graph.",
        "The penalty is the best on dev of five, not of sixty drawn at random.",
        (
            "Features are left as they are and the regression runs to its minimum; the release scales each feature to"
            " [0, 1] and stops early."
        ),
        "Keeps stop words and, unless min_count says otherwise, rare words, as TextGCN does for short texts only.",
    ),
)
class SimplifiedGraphConvolution(Estimator):
    """softmax(S^K X W) at all texts: S is TextGCN's normalised graph, ``power`` is K, X one-hot,
    and W all there is to learn.

    That is a graph network of K layers whose non-linearities are taken out, so that their weights
    merge into one matrix. Of the ``penalties`` on W the one with the most right answers on dev
    counts, the larger one of two that are equal. TRANSDUCTIVE: only texts that were in the graph
    can be answered. Words seen less than ``min_count`` times are left out. Slower than counting
    words, because the regression is run to its minimum once for each penalty, with the whole graph
    in every step.
    """

    transductive = True
    from_dev = ("graph", "penalty", "weights", "parameter_count", "flops_per_example")  # its texts are nodes too

    def __init__(
        self,
        seed: int = 0,
        window: int = 20,
        power: int = 2,
        penalties: tuple = (1e-5, 1e-6, 1e-7, 1e-8, 1e-9),
        min_count: int = 1,
    ):
        super().__init__(seed)
        if power < 1:
            raise ValueError(f"sgc: power={power}, but a text reaches its words by one propagation at least")
        self.window, self.power, self.penalties, self.min_count = window, power, penalties, min_count

    @classmethod
    def memory_needed(cls, size: int, hyperparameters: dict) -> float:
        return 100.0 * size

    def fit(self, train: Sequence[Row], dev: Sequence[Row], unlabelled: Sequence[Row] = ()) -> None:
        self.graph = TextGraph.of((*train, *dev, *unlabelled), self.window, self.min_count)
        self.labels = sorted({row["label"] for row in train})
        features = self._features(train)
        gold = np.array([[row["label"] == label for label in self.labels] for row in train], dtype=float)
        most = -1
        for penalty in sorted(self.penalties, reverse=True):
            weights = logistic_regression(features, gold, penalty)
            right = sum(answer == row["label"] for answer, row in zip(self._answers(dev, weights), dev, strict=True))
            if right > most:
                most, self.weights, self.penalty = right, weights, penalty
        self.parameter_count = self.weights.size
        texts = len(self.graph.nodes)
        edges = (self.power - 1) * self.graph.adjacency.nnz + self.graph.adjacency[:texts].nnz
        self.flops_per_example = 2 * edges * len(self.labels) / texts  # one pass answers all texts together

    def _features(self, rows: Sequence[Row]) -> Propagated:
        return Propagated(self.graph.adjacency, self.graph.places(rows), self.power)

    def _answers(self, rows: Sequence[Row], weights: np.ndarray) -> list[str]:
        return [self.labels[best] for best in (self._features(rows) @ weights).argmax(axis=1).tolist()]

    def predict(self, rows: Sequence[Row]) -> list[str]:
        return self._answers(rows, self.weights)
