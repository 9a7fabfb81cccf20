"""The diseases corpus: many classes, of which one is rare."""

from __future__ import annotations

from collections import Counter

from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.pipeline import make_pipeline

from tasks.mini import diseases


def test_all_words_together_tell_every_class_and_the_rare_one_is_worth_asking_for() -> None:
    train, test = list(diseases.rows("train")), list(diseases.rows("test"))
    assert Counter(row["label"] for row in train) == diseases.SIZES
    labels = [row["label"] for row in test]
    model = make_pipeline(CountVectorizer(), LogisticRegression(max_iter=1000, class_weight="balanced"))
    predicted = model.fit([row["text"] for row in train], [row["label"] for row in train]).predict(
        [row["text"] for row in test]
    )
    assert (predicted == labels).mean() > 0.8 and f1_score(labels, predicted, average="macro") > 0.8
    assert 0 < labels.count(diseases.RAREST) < 0.03 * len(labels)


def test_few_words_give_their_class_away() -> None:
    """One keyword would be a lookup, which weighs nothing."""
    rows = list(diseases.rows("train"))
    labels = [Counter(row["label"] for row in rows if word in row["text"].split()) for word in diseases.WORDS]
    assert sum(max(found.values()) > 0.7 * found.total() for found in labels) <= len(labels) / 5


def test_drugs_hardly_come_twice() -> None:
    """They are what a classifier of rare words learns by heart."""
    seen = Counter(word for row in diseases.rows("train") for word in row["text"].split() if word not in diseases.WORDS)
    assert sum(count == 1 for count in seen.values()) > 0.9 * len(seen) > 900
