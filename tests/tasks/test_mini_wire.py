"""The wire corpus: several labels, and topics that are named but not reported."""

from __future__ import annotations

from collections import Counter

from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MultiLabelBinarizer

from tasks.mini.wire import GRAIN, TOPICS, rows


def reported(text: str) -> str:
    """The sentences that do not look back."""
    return ". ".join(sentence for sentence in text.split(". ") if not sentence.startswith("A year ago"))


def micro_f1(read) -> float:
    """That of one regression for each label on the words of what ``read`` leaves of each item."""
    train, test = list(rows("train")), list(rows("test"))
    labels = MultiLabelBinarizer().fit([row["labels"] for row in train])
    model = make_pipeline(CountVectorizer(), OneVsRestClassifier(LogisticRegression(max_iter=1000)))
    model.fit([read(row["text"]) for row in train], labels.transform([row["labels"] for row in train]))
    predicted = model.predict([read(row["text"]) for row in test])
    return f1_score(labels.transform([row["labels"] for row in test]), predicted, average="micro")


def test_the_labels_are_the_topics_that_are_reported() -> None:
    for row in rows("dev"):
        words = {*reported(row["text"]).lower().replace(".", "").split()}
        topics = {topic for topic, own in TOPICS.items() if words & {*own}}
        assert row["labels"] == sorted(topics | ({"grain"} if topics & GRAIN else set()))


def test_items_have_one_to_four_labels_and_name_another_topic() -> None:
    found = list(rows("train"))
    assert {*Counter(len(row["labels"]) for row in found)} == {1, 2, 3, 4}
    assert all("year ago" in row["text"] for row in found)


def test_a_bag_of_words_cannot_tell_what_is_reported() -> None:
    assert micro_f1(str) < 0.85
    assert micro_f1(reported) > 0.97
