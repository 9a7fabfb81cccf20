"""The entities corpus: both nouns are in the bag, and their order decides."""

from __future__ import annotations

from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from tasks.mini.entities import LABELS, NOUNS, rows


def accuracy(neighbours: int) -> float:
    """That of a regression on words, or on so many neighbouring words."""
    train, test = list(rows("train")), list(rows("test"))
    words = CountVectorizer(ngram_range=(1, neighbours), token_pattern=r"\w+")
    model = make_pipeline(words, LogisticRegression(max_iter=1000))
    model.fit([row["text"] for row in train], [row["label"] for row in train])
    return model.score([row["text"] for row in test], [row["label"] for row in test])


def test_a_text_is_of_its_first_noun_and_names_a_second_one() -> None:
    for row in rows("dev"):
        found = [label for word in row["text"].split() for label in LABELS if word in NOUNS[label]]
        assert len(found) == 2 and found[0] == row["label"] != found[1]


def test_a_bag_of_words_is_right_half_of_the_time_and_neighbours_always() -> None:
    assert 0.3 < accuracy(1) < 0.6
    assert accuracy(2) > 0.95
