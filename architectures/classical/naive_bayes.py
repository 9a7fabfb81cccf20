"""Multinomial naive Bayes."""

from __future__ import annotations

from collections.abc import Sequence

from sklearn.naive_bayes import MultinomialNB

from architectures.blocks.ngrams import ngram_counter
from harness.kinds import Estimator
from harness.registry import register
from harness.task import Row


@register(
    "naive_bayes",
    name="Naive Bayes",
    kind="fit",
    paper="Socher et al. 2013 (baseline)",
    source="M-T1[43]",
    year=2013,
    version=2,
)
class NaiveBayes(Estimator):
    """argmax over classes of log p(c) + sum over n-grams f of n_f log((N_cf + a) / (N_c + a |V|)).

    n_f counts f in the text, N_cf in the training texts of class c, N_c sums N_cf over the
    vocabulary V of all n-grams of training; a is ``smoothing``. An n-gram that training never
    showed is ignored. p(c) is the share of c in training. Words alone are the paper's NB; with
    ``ngrams`` 2, pairs of words too, it is the paper's BiNB.
    """

    def __init__(self, seed: int = 0, ngrams: int = 1, smoothing: float = 1.0):
        super().__init__(seed)
        self.ngrams, self.smoothing = ngrams, smoothing

    def fit(self, train: Sequence[Row], dev: Sequence[Row], unlabelled: Sequence[Row] = ()) -> None:
        self.counter = ngram_counter(self.ngrams)
        counts = self.counter.fit_transform([row["text"] for row in train])
        self.model = MultinomialNB(alpha=self.smoothing).fit(counts, [row["label"] for row in train])
        self.parameter_count = self.model.feature_log_prob_.size + self.model.class_log_prior_.size

    def predict(self, rows: Sequence[Row]) -> list[str]:
        return self.model.predict(self.counter.transform([row["text"] for row in rows])).tolist()

    @classmethod
    def memory_needed(cls, size: int, hyperparameters: dict) -> float:
        return 15.0 * hyperparameters["ngrams"] * size

    def fitted_state(self) -> dict:
        model = self.model
        learnt = {"classes": model.classes_, "priors": model.class_log_prior_, "ngram_logs": model.feature_log_prob_}
        return {"ngrams": self.counter.get_feature_names_out()} | learnt

    def restore_fitted(self, state: dict) -> None:
        self.counter = ngram_counter(self.ngrams, vocabulary=state["ngrams"])
        self.model = model = MultinomialNB(alpha=self.smoothing)
        model.classes_, model.class_log_prior_ = state["classes"], state["priors"]
        model.feature_log_prob_, model.n_features_in_ = state["ngram_logs"], len(state["ngrams"])
