"""The corpus of pronouns: agreement tells what one stands for, and neither place nor words do."""

from __future__ import annotations

from collections import Counter

import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB

from harness.mentions import CANDIDATES, NEITHER, PRONOUN, pronoun_of
from harness.metrics import score
from harness.task import Row
from tasks.mini import mentions

SPLITS = ("train", "dev", "test")


def between(row: Row, marks: tuple[str, str]) -> str:
    begin, end = (row["text"].index(mark) for mark in marks)
    return " ".join(row["text"][begin + 1 : end])


def gender_of(words: str, forms: dict[str, tuple[str, ...]]) -> str:
    [found] = [gender for gender, known in forms.items() if words in known]
    return found


@pytest.mark.parametrize("split", SPLITS)
def test_the_label_is_the_name_before_the_pronoun_that_agrees_with_it(split):
    """The rule of the corpus, read from the texts alone; one name at most fits."""
    for row in mentions.rows(split):
        gender = gender_of(pronoun_of(row["text"]), mentions.PRONOUNS)
        place = row["text"].index(PRONOUN[0])
        fits = [
            name
            for name, marks in CANDIDATES.items()
            if row["text"].index(marks[0]) < place and gender_of(between(row, marks), mentions.NAMES) == gender
        ]
        assert row["label"] == (fits[0] if fits else NEITHER) and len(fits) < 2, row


def test_labels_are_as_frequent_and_some_names_stand_behind():
    rows = list(mentions.rows("test"))
    counts = Counter(row["label"] for row in rows)
    assert set(counts) == {*CANDIDATES, NEITHER} and max(counts.values()) - min(counts.values()) <= 1
    behind = [row for row in rows if row["text"].index(CANDIDATES["B"][0]) > row["text"].index(PRONOUN[0])]
    assert 0.05 < len(behind) / len(rows) < 0.3
    agree = [row for row in behind if gender_of(between(row, CANDIDATES["B"]), mentions.NAMES) ==
             gender_of(pronoun_of(row["text"]), mentions.PRONOUNS)]  # fmt: skip
    assert agree, "else the order would not matter"


def nearest(row: Row) -> str:
    """The name that ends last before the pronoun."""
    place = row["text"].index(PRONOUN[0])
    ends = {name: row["text"].index(marks[1]) for name, marks in CANDIDATES.items()}
    before = {name: end for name, end in ends.items() if end < place}
    return max(before, key=before.__getitem__)


def test_the_nearest_name_and_a_bag_of_words_fail():
    train, test = list(mentions.rows("train")), list(mentions.rows("test"))
    texts = [[" ".join(row["text"]) for row in rows] for rows in (train, test)]
    counted = CountVectorizer(token_pattern=r"\S+").fit(texts[0])
    bag = MultinomialNB().fit(counted.transform(texts[0]), [row["label"] for row in train])
    for said in (list(map(nearest, test)), bag.predict(counted.transform(texts[1])).tolist()):
        assert score(["mention_f1"], said, test)["mention_f1"] < 0.55
