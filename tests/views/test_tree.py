"""Trees computed level by level must give what recursion over each tree gives."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from harness.views.tree import ABSENT, Trees, parse
from harness.views.words import UNKNOWN

FINE = "(3 (2 A) (4 (3 very) (4 fine)))"
CHAIN = "(1 (1 (0 (2 not) (2 at)) (2 all)) (2 .))"


def fitted(*trees: str, **options) -> Trees:
    view = Trees(min_count=1, **options)
    view.fit(trees or (FINE, CHAIN))
    return view


def recursive(text: str) -> str:
    """The bracketing without labels, by recursion over the tokens: an independent reading."""
    tokens = text.replace("(", " ( ").replace(")", " ) ").split(" ")
    tokens = [t for t in tokens if t]

    def read(at: int) -> tuple[str, int]:
        if tokens[at + 2] != "(":
            return tokens[at + 2].lower(), at + 4
        left, at = read(at + 2)
        right, at = read(at)
        return f"[{left} {right}]", at + 1

    return read(0)[0]


def by_levels(view: Trees, texts: list[str], rows: list[int]) -> list[str]:
    """Each root's bracketing, put together with nothing but the level schedule."""
    batch = view.collate(view.encode(texts), np.array(rows))
    written: dict[int, str] = {}
    for node, id in zip(batch.leaf_nodes.tolist(), batch.ids.tolist(), strict=True):
        written[node] = ["", "?", *view.vocabulary.words][id]
    open_nodes = batch.leaf_nodes.tolist()
    for parents, left, right, staying in (tuple(field.tolist() for field in level) for level in batch.levels):
        level = {
            p: f"[{written[open_nodes[a]]} {written[open_nodes[b]]}]"
            for p, a, b in zip(parents, left, right, strict=True)
        }
        assert not level.keys() & written.keys()
        assert sorted(left + right + staying) == list(range(len(open_nodes))), (
            "a node that is open is taken up once or stays"
        )
        written |= level
        open_nodes = parents + [open_nodes[place] for place in staying]
    assert sorted(open_nodes) == batch.roots.tolist()
    assert len(written) == len(batch.labels) == len(batch.node_text)
    return [written[root] for root in batch.roots.tolist()]


def test_levels_rebuild_every_tree_of_the_batch():
    texts = [FINE, CHAIN, "(2 alone)", "(2 (2 (2 a) (2 b)) (2 (2 c) (2 d)))"]
    assert by_levels(fitted(*texts), texts, [3, 1, 2, 0, 1]) == [recursive(texts[i]) for i in (3, 1, 2, 0, 1)]


def test_nodes_of_one_height_are_one_level_across_the_batch():
    """One level per tree would be the slow schedule again."""
    batch = fitted().collate(fitted().encode([FINE, CHAIN]), np.array([0, 1]))
    assert [len(level.parents) for level in batch.levels] == [2, 2, 1]


def test_labels_and_texts_of_the_nodes():
    view = fitted()
    batch = view.collate(view.encode([FINE, CHAIN]), np.array([1, 0]))
    assert batch.node_text.tolist() == [0] * 7 + [1] * 5
    assert batch.labels[batch.roots].tolist() == [1, 3]
    assert batch.labels[batch.leaf_nodes].tolist() == [2, 2, 2, 2, 2, 3, 4]
    assert sorted(batch.labels[7:].tolist()) == [2, 3, 3, 4, 4]
    assert batch.lengths.tolist() == [4, 3] == view.lengths(view.encode([CHAIN, FINE])).tolist()


def test_labels_that_are_absent_or_names_are_minus_one():
    tree = parse("(S (NP (2 we)) ( go home))")
    assert tree.words == ["we", "go", "home"]
    assert tree.label == [2, ABSENT, ABSENT, ABSENT, ABSENT]


def test_unary_chains_collapse_to_the_upper_label():
    assert parse("(4 (1 (2 (3 a) (0 b))))").label == [3, 0, 4]
    assert parse("(ROOT (1 a))") == parse("(1 a)")


def test_only_the_ascii_space_separates():
    """Three training leaves of SST hold a no-break space."""
    assert parse("(2 (2 8\xa01\\/2) (2 -LRB-))\n").words == ["8\xa01\\/2", "-LRB-"]


def test_trees_of_one_leaf_need_no_level():
    view = fitted("(4 good)")
    batch = view.collate(view.encode(["(0 unseen)", "(4 good)"]), np.arange(2))
    assert (
        batch.levels == ()
        and batch.ids.tolist() == [UNKNOWN, 2]
        and batch.roots.tolist() == batch.leaf_nodes.tolist() == [0, 1]
    )


@pytest.mark.parametrize(
    ("tree", "problem"),
    [
        ("(2 (2 a) (2 b)", "not closed"),
        ("(2 a))", "closing bracket"),
        ("(2 (2 a) (2 b) (2 c))", "3 children"),
        ("(2)", "0 children"),
        ("(2 a) (2 b)", "2 roots"),
        ("", "0 roots"),
    ],
)
def test_a_malformed_tree_is_named(tree, problem):
    with pytest.raises(ValueError, match=problem) as error:
        fitted().encode([FINE, tree])
    assert "tree 1" in str(error.value) and repr(tree) in str(error.value)


def test_case_is_a_setting_and_state_survives_json():
    view, other = fitted(lower=False), Trees(lower=False)
    assert "A" in view.vocabulary.words and "a" in fitted().vocabulary.words
    other.restore(json.loads(json.dumps(view.state())))
    assert np.array_equal(other.encode([FINE])["ids"].values, view.encode([FINE])["ids"].values)
    assert other.width == view.width == 9


def test_the_real_trees_of_sst(corpora):
    with gzip.open(corpora / "sst" / "trees" / "dev.txt.gz", "rt", encoding="utf-8", newline="\n") as file:
        texts = file.read().rstrip("\n").split("\n")
    view = fitted(*texts)
    columns = view.encode(texts)
    assert len(columns["label"].values) == 41_447 and min(columns["label"].values) == 0
    rows = list(range(0, len(texts), 23))
    assert by_levels(view, texts, rows) == [recursive(texts[i]) for i in rows]
