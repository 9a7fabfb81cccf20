"""Latent Dirichlet allocation: a text's shares of topics, and a linear machine above them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import digamma
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.svm import LinearSVC

from architectures.blocks import linear_machine
from architectures.blocks.ngrams import ngram_counter
from harness.kinds import Estimator
from harness.registry import register
from harness.task import Row
from harness.views.base import Text


@register(
    "lda",
    name="LDA features",
    kind="fit",
    paper="Maas et al. 2011 (baseline); Blei et al. 2003",
    source="M-T1[214]",
    year=2011,
    tiny={"topics": 10, "passes": 5},
    deviations=(
        "All words of training are counted; the paper takes the 5,000 commonest without the first 50.",
        "Both Dirichlet priors have weights of 1 / topics, as in scikit-learn; Blei et al. 2003 fit theirs.",
        "The numbers of passes are ours, and so is C = 1.",
    ),
)
class LatentDirichletFeatures(Estimator):
    """A linear SVM on theta, a text's shares of ``topics`` that were found without labels.

    A topic is a distribution over words, a text a mixture of topics, and both have Dirichlet
    priors. Topics are fitted to the training texts by mean-field variational Bayes, ``passes``
    times over all of them. Theta is the mean of a text's own variational distribution, found with
    the topics as they are: neither a training text nor a new one changes them. The random numbers
    are the starts of the topics, and of each text's distribution in each pass. Slow, because each
    of the passes finds every text's distribution.
    """

    def __init__(self, seed: int = 0, topics: int = 50, passes: int = 50, C: float = 1.0):
        super().__init__(seed)
        self.topics, self.passes, self.C = topics, passes, C

    @classmethod
    def memory_needed(cls, size: int, hyperparameters: dict[str, Any]) -> float:
        return (15.0 + 0.2 * hyperparameters["topics"]) * size

    def _fresh(self) -> LatentDirichletAllocation:
        return LatentDirichletAllocation(
            self.topics, learning_method="batch", max_iter=self.passes, random_state=self.seed
        )

    def fit(self, train: Sequence[Row], dev: Sequence[Row], unlabelled: Sequence[Row] = ()) -> None:
        texts = [row["text"] for row in train]
        self.counter = ngram_counter(1)
        self.model = self._fresh().fit(self.counter.fit_transform(texts))
        self.machine = LinearSVC(C=self.C, random_state=self.seed)
        self.machine.fit(self.shares(texts), [row["label"] for row in train])
        self.parameter_count = self.model.components_.size + self.machine.coef_.size + self.machine.intercept_.size

    def shares(self, texts: Sequence[Text]) -> np.ndarray:
        """Theta of each text (N, topics), which sums to 1; words that training never showed are
        ignored, and a text of them alone has equal shares."""
        return self.model.transform(self.counter.transform(texts))

    def predict(self, rows: Sequence[Row]) -> list[str]:
        return self.machine.predict(self.shares([row["text"] for row in rows])).tolist()

    def fitted_state(self) -> dict[str, Any]:
        state = {"words": self.counter.get_feature_names_out(), "topics": self.model.components_}
        return state | linear_machine.learnt(self.machine)

    def restore_fitted(self, state: dict[str, Any]) -> None:
        self.counter = ngram_counter(1, vocabulary=state["words"])
        self.machine = linear_machine.restored(state)
        self.model = model = self._fresh()
        # All that scikit-learn reads of a fitted model to fold in: the prior, and exp(E[log
        # topic]), which follows from the Dirichlet weights of the topics.
        weights = model.components_ = state["topics"]
        model.n_features_in_, model.doc_topic_prior_ = weights.shape[1], 1 / self.topics
        model.exp_dirichlet_component_ = np.exp(digamma(weights) - digamma(weights.sum(axis=1, keepdims=True)))
