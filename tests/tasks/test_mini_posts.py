"""The posts corpus: groups of groups, and quotes of others."""

from __future__ import annotations

from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from harness.task import Row
from tasks.mini.posts import BRANCHES, GROUPS, rows


def without_quotes(text: str) -> str:
    return "\n".join(line for line in text.split("\n") if not line.startswith(">"))


def accuracy(read) -> float:
    """That of a regression on the words of what ``read`` leaves of each message."""
    train, test = list(rows("train")), list(rows("test"))
    model = make_pipeline(CountVectorizer(), LogisticRegression(max_iter=1000))
    model.fit([read(row["text"]) for row in train], [row["label"] for row in train])
    return model.score([read(row["text"]) for row in test], [row["label"] for row in test])


def test_a_message_names_its_group_outside_of_the_quote_alone() -> None:
    def named(text: str) -> set[str]:
        return {group for group, words in GROUPS.items() if {*words} & {*text.split()}}

    found: list[Row] = list(rows("test"))
    assert all(named(without_quotes(row["text"])) == {row["label"]} for row in found)
    assert all(len(named(row["text"])) == 2 for row in found)


def test_the_words_of_a_branch_do_not_tell_its_groups() -> None:
    """They tell the branch, which has two groups."""
    shared = {word for words in BRANCHES.values() for word in words}

    def read(text: str) -> str:
        return " ".join(word for word in without_quotes(text).replace(".", "").split() if word in shared)

    assert 0.35 < accuracy(read) < 0.65


def test_quotes_mislead_whoever_does_not_see_them() -> None:
    """A bag of words is far from chance, and far from what a reader of lines can do."""
    assert 0.4 < accuracy(str) < 0.85
    assert accuracy(without_quotes) > 0.97
