"""Systems that count words and are not trained by gradients."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

from harness.kinds import Estimator, Prediction
from harness.registry import register
from harness.task import Row
from harness.views.base import words_of


def words(text: str | list[str]) -> list[str]:
    """Words of a text in lower case."""
    return [word.lower() for word in words_of(text)]


@register(
    "frozen_keywords",
    name="Keywords",
    kind="fit",
    paper="Nobody 1998",
    source="equation 1",
    year=1998,
    hyperparameters={"smooth": 0.5},
)
class Keywords(Estimator):
    """The class whose training texts have the words of a text most often; pairs are read as one
    text."""

    task_types = ("classify", "match")

    def __init__(self, smooth: float = 1.0, seed: int = 0):
        super().__init__(seed)
        self.smooth = smooth

    @staticmethod
    def text(row: Row) -> list[str]:
        """Words of the row's text or texts."""
        return words(row["text"]) if "text" in row else words(row["first"]) + words(row["second"])

    def fit(self, train: Sequence[Row], dev: Sequence[Row], unlabelled: Sequence[Row] = ()) -> None:
        self.seen: dict[str, Counter] = defaultdict(Counter)
        for row in train:
            self.seen[row["label"]].update(self.text(row))
        self.parameter_count = sum(map(len, self.seen.values()))

    def predict(self, rows: Sequence[Row]) -> list[Prediction]:
        return [max(sorted(self.seen), key=lambda label: self.score(label, self.text(row))) for row in rows]

    def score(self, label: str, text: list[str]) -> float:
        """Log-likelihood of the words in a class."""
        seen = self.seen[label]
        return sum(math.log((seen[word] + self.smooth) / (seen.total() + self.smooth * len(seen))) for word in text)


@register(
    "frozen_overlap",
    name="Shared words",
    kind="fit",
    paper="Nobody 1988",
    source="equation 3",
    year=1988,
    version=2,
)
class SharedWords(Estimator):
    """Inverse document frequencies, those of the test texts among them, of the words that two texts
    share."""

    task_types = ("rank",)
    transductive = True
    flops_per_example = 100.0

    def fit(self, train: Sequence[Row], dev: Sequence[Row], unlabelled: Sequence[Row] = ()) -> None:
        texts = [set(words(row["second"])) for row in (*train, *dev, *unlabelled)]
        counts = Counter(word for text in texts for word in text)
        self.weights = {word: math.log(1 + len(texts) / count) for word, count in counts.items()}
        self.parameter_count = len(self.weights)

    def predict(self, rows: Sequence[Row]) -> list[Prediction]:
        shared = [set(words(row["first"])) & set(words(row["second"])) for row in rows]
        return [sum(self.weights.get(word, 0.0) for word in sorted(found)) for found in shared]
