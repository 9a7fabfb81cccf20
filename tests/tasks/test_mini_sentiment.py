"""The sentiment corpus: trees that follow their rules, and words that do not tell without their
order."""

from __future__ import annotations

import re

import pytest
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from harness.task import Row
from tasks.mini import sentiment
from tasks.mini.sentiment import LABELS, LEXICON, Phrase, compose, leaf


def nodes(tree: str) -> list[tuple[int, list[str]]]:
    """Label and words of every node, read from the brackets alone; raises if a node is neither a
    word nor has two parts."""
    found: list[tuple[int, list[str]]] = []
    position = 0
    tokens = re.findall(r"[()]|[^()\s]+", tree)

    def read() -> list[str]:
        nonlocal position
        assert tokens[position] == "("
        label = int(tokens[position + 1])
        position += 2
        if tokens[position] != "(":
            words = [tokens[position]]
            position += 1
        else:
            words = read() + read()
        assert tokens[position] == ")"
        position += 1
        found.append((label, words))
        return words

    read()
    assert position == len(tokens)
    return found


@pytest.mark.parametrize("fine", [True, False])
@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_trees_carry_the_text_and_the_label(split: str, fine: bool) -> None:
    """A tree model and a sequence model must be given the same words and the same answer."""
    for row in sentiment.rows(split, fine):
        everything = nodes(row["tree"])
        root, words = everything[-1]
        assert words == row["text"]
        assert row["label"] == (LABELS[root] if fine else "negative" if root < 2 else "positive")
        assert all(label == LEXICON.get(words[0], 0) + 2 for label, words in everything if len(words) == 1)


def words(text: str) -> Phrase:
    """Right-branching phrase over the words."""
    first, _, rest = text.partition(" ")
    return compose(leaf(first), words(rest)) if rest else leaf(first)


@pytest.mark.parametrize(
    ("phrase", "value"),
    [
        (words("good"), 1),
        (words("very good"), 2),
        (words("not good"), -1),
        (words("not great"), -1),
        (words("not awful"), 1),
        (words("not very good"), -1),
        (words("really not good"), -2),
        (words("very long"), 0),
        (words("not long"), 0),
        (words("never love the film"), -1),
        (compose(words("the plot is great"), words("but the cast is bad")), -1),
        (compose(words("the plot is awful"), words("but the cast is not bad")), 1),
        (compose(words("the plot is awful"), words("but the cast is quiet")), 0),
        (compose(words("the plot is good"), words("and the cast is great")), 2),
    ],
)
def test_composition_by_hand(phrase: Phrase, value: int) -> None:
    assert phrase.value == value
    assert phrase.tree.startswith(f"({value + 2} ")


def rows(split: str, fine: bool = False) -> list[Row]:
    return list(sentiment.rows(split, fine))


def bag_accuracy(train: list[Row], test: list[Row]) -> float:
    model = make_pipeline(CountVectorizer(analyzer=lambda row: row["text"]), LogisticRegression(max_iter=1000))
    return model.fit(train, [row["label"] for row in train]).score(test, [row["label"] for row in test])


def test_a_bag_of_words_is_near_chance_where_order_decides() -> None:
    train, test = rows("train"), rows("test")
    labels = [row["label"] for row in test]
    hard = [row for row in test if {"but", "not", "never"} & set(row["text"])]
    mirrored = [row for row in test if "but" in row["text"]]
    assert max(labels.count(label) for label in set(labels)) / len(labels) < 0.56
    assert bag_accuracy(train, hard) < 0.55
    assert bag_accuracy(train, mirrored) < 0.55
    assert bag_accuracy(train, test) < 0.62
    assert bag_accuracy(rows("train", True), rows("test", True)) < 0.60


def test_most_contrasts_have_a_mirror_image_with_another_label() -> None:
    """The proof that no bag of words, however clever, can do better than chance on them."""
    for split in ("train", "dev", "test"):
        contrasts = [row for row in rows(split, fine=True) if "but" in row["text"]]
        by_bag: dict[tuple[str, ...], set[str]] = {}
        for row in contrasts:
            by_bag.setdefault(tuple(sorted(row["text"])), set()).add(row["label"])
        assert sum(len(labels) > 1 for labels in by_bag.values()) > 0.9 * len(by_bag)


def scoped(row: Row) -> dict[str, int]:
    """Words after the last "but", each marked by the modifiers before it: what a model of order can
    see."""
    text = row["text"]
    start = len(text) - text[::-1].index("but") if "but" in text else 0
    found: dict[str, int] = {}
    marks: list[str] = []
    for word in text[start:]:
        if word in ("not", "never", "very", "really"):
            marks.append(word)
        elif word in LEXICON:
            found["_".join([*marks, word])] = 1
            found["_".join([*marks, str(LEXICON[word])])] = 1
            marks = []
    return found


@pytest.mark.parametrize("fine", [True, False])
def test_a_reader_of_order_and_scope_succeeds(fine: bool) -> None:
    train, test = rows("train", fine), rows("test", fine)
    model = make_pipeline(DictVectorizer(), LogisticRegression(C=10, max_iter=1000))
    model.fit([scoped(row) for row in train], [row["label"] for row in train])
    assert model.score([scoped(row) for row in test], [row["label"] for row in test]) > 0.95
