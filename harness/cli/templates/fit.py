"""My model: one sentence on what it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from harness.kinds import Estimator
from harness.registry import register
from harness.task import Row
from harness.views.base import words_of


@register(
    "my_model",
    name="My model",
    kind="fit",
    paper="Author & Author 2000",
    source="section or equation that this follows",
    year=2000,
)
class MyModel(Estimator):
    """Logistic regression over the counts of words and pairs of neighbouring words.

    Say here what the paper does, and where.
    """

    task_types = ("classify",)

    def __init__(self, seed: int = 0, penalty: float = 1.0):
        super().__init__(seed)
        self.penalty = penalty

    def fit(self, train: Sequence[Row], dev: Sequence[Row], unlabelled: Sequence[Row] = ()) -> None:
        # a text may be a list of words, of which there is no lower case
        self.counter = CountVectorizer(tokenizer=words_of, token_pattern=None, lowercase=False, ngram_range=(1, 2))
        counts = self.counter.fit_transform([row["text"] for row in train])
        self.model = LogisticRegression(C=1 / self.penalty, max_iter=1000, random_state=self.seed)
        self.model.fit(counts, [row["label"] for row in train])
        self.parameter_count = self.model.coef_.size + self.model.intercept_.size

    def predict(self, rows: Sequence[Row]) -> list[str]:
        return self.model.predict(self.counter.transform([row["text"] for row in rows])).tolist()

    def fitted_state(self) -> dict[str, Any]:
        learnt = {"classes": self.model.classes_, "weights": self.model.coef_, "bias": self.model.intercept_}
        return learnt | {"ngrams": self.counter.get_feature_names_out()}

    def restore_fitted(self, state: dict[str, Any]) -> None:
        self.counter = CountVectorizer(
            tokenizer=words_of, token_pattern=None, lowercase=False, ngram_range=(1, 2), vocabulary=state["ngrams"]
        )
        self.model = LogisticRegression(C=1 / self.penalty, max_iter=1000, random_state=self.seed)
        self.model.classes_, self.model.coef_, self.model.intercept_ = (
            state[name] for name in ("classes", "weights", "bias")
        )
