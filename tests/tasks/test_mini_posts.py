"""The posts corpus: groups of groups, and quotes of others."""

from __future__ import annotations

from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from harness.task import Row
from tasks.mini.posts import BRANCHES, CROSSING, GROUPS, OF_GROUP, rows
from tasks.newsgroups20 import Newsgroups20


def without_quotes(text: str) -> str:
    return "\n".join(line for line in text.split("\n") if not line.startswith(">"))


def accuracy(read) -> float:
    """That of a regression on the words of what ``read`` leaves of each message."""
    train, test = list(rows("train")), list(rows("test"))
    model = make_pipeline(CountVectorizer(), LogisticRegression(max_iter=1000))
    model.fit([read(row["text"]) for row in train], [row["label"] for row in train])
    return model.score([read(row["text"]) for row in test], [row["label"] for row in test])


def test_a_message_names_its_group_outside_of_the_quote_alone() -> None:
    """By words of its own, or by those of two groups of which its branch has one."""

    def named(text: str) -> set[str]:
        found, words = set(), {*text.replace(".", "").split()}
        branches = {branch for branch, its in BRANCHES.items() if words & {*its}}
        for group, own in GROUPS.items():
            shared = words & {*OF_GROUP[group]} and group.partition(".")[0] in branches
            found |= {group} if words & {*own} or shared else set()
        return found

    found: list[Row] = list(rows("test"))
    assert all(named(without_quotes(row["text"])) == {row["label"]} for row in found)
    assert all(len(named(row["text"])) >= 2 for row in found)


def test_some_messages_name_their_group_only_together_with_its_branch() -> None:
    """A model of the groups that sees no branch guesses between two there."""
    ambiguous = 0
    for row in rows("test"):
        words = {*without_quotes(row["text"]).split()}
        if not words & {*GROUPS[row["label"]]}:
            (pair,) = (pair for pair, its in CROSSING.items() if words & {*its})
            assert row["label"] in pair
            ambiguous += 1
    assert 20 < ambiguous < 60, "about a quarter of 150"


def test_every_word_of_two_groups_stands_for_groups_of_two_branches() -> None:
    """One of the same branch could be told by neither."""
    assert sorted(OF_GROUP) == sorted(GROUPS)
    for pair in CROSSING:
        assert len({Newsgroups20.label_tree[group] for group in pair}) == 2


def test_the_label_tree_is_the_first_part_of_the_names() -> None:
    tree = Newsgroups20.label_tree
    assert len(tree) == 20 and set(tree.values()) == {"alt", "comp", "misc", "rec", "sci", "soc", "talk"}
    assert tree["comp.os.ms-windows.misc"] == "comp" and tree["soc.religion.christian"] == "soc"


def test_the_words_of_a_branch_do_not_tell_its_groups() -> None:
    """They tell the branch, which has two groups."""
    shared = {word for words in BRANCHES.values() for word in words}

    def read(text: str) -> str:
        return " ".join(word for word in without_quotes(text).replace(".", "").split() if word in shared)

    assert 0.35 < accuracy(read) < 0.65


def test_quotes_mislead_whoever_does_not_see_them() -> None:
    """A bag of words is far from chance, and far from what a reader of lines can do."""
    assert 0.35 < accuracy(str) < 0.85
    assert accuracy(without_quotes) > 0.97
