"""The topics corpus: the one that a bag of words solves."""

from __future__ import annotations

from collections import Counter

from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from tasks.mini import topics
from tasks.mini.topics import TOPICS


def test_a_bag_of_words_succeeds_and_the_majority_does_not() -> None:
    train, test = list(topics.rows("train")), list(topics.rows("test"))
    labels = [row["label"] for row in test]
    assert set(labels) == {"World", "Sports", "Business", "Sci/Tech"}
    assert max(Counter(labels).values()) / len(labels) <= 0.26
    model = make_pipeline(CountVectorizer(), LogisticRegression(max_iter=1000))
    model.fit([row["text"] for row in train], [row["label"] for row in train])
    assert model.score([row["text"] for row in test], labels) > 0.93


def test_many_texts_borrow_a_word_from_another_topic() -> None:
    """Without misleading words one keyword would do, and the corpus would not ask for weighing."""
    misled = 0
    test = list(topics.rows("test"))
    for row in test:
        words = set(row["text"].lower().replace(",", "").replace(".", "").split())
        misled += any(words & {*t.objects, *t.places} for name, t in TOPICS.items() if name != row["label"])
    assert misled > 0.4 * len(test)
