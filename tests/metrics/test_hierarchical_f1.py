"""Hierarchical F1, and the tree that it counts by."""

from __future__ import annotations

import pytest

from harness.label_tree import LabelTree, ancestors, with_ancestors
from harness.metrics import score

TREE = {"cars": "sport", "hockey": "sport", "sport": "all", "space": "science", "science": "all"}


def test_hierarchical_f1_by_hand():
    """Of the first text sport and all are right, of the second all three, of the third all alone:
    6 right of the 3 + 3 + 3 said and the 3 + 3 + 3 true."""
    rows = [{"label": "cars"}, {"label": "space"}, {"label": "hockey"}]
    predictions = ["hockey", "space", "space"]
    found = score(["accuracy", "hierarchical_f1"], predictions, rows, TREE)
    assert found == {"accuracy": pytest.approx(1 / 3), "hierarchical_f1": pytest.approx(2 * 6 / (9 + 9))}


def test_of_sets_of_labels_by_hand():
    """An ancestor of two labels counts once, and one that is said as well counts once too."""
    rows = [{"labels": ["cars", "hockey"]}, {"labels": ["space"]}]
    predictions = [{"cars": 0.9, "sport": 0.8, "space": 0.5}, {"sport": 0.6}]
    # said: cars, sport, all; sport, all. True: cars, hockey, sport, all; space, science, all.
    found = score(["hierarchical_f1"], predictions, rows, TREE)
    assert found == {"hierarchical_f1": pytest.approx(2 * (3 + 1) / (5 + 7))}


def test_a_score_without_the_tree_is_refused():
    """It would be micro F1 under another name."""
    with pytest.raises(ValueError, match="hierarchical_f1 needs a label tree"):
        score(["hierarchical_f1"], ["cars"], [{"label": "cars"}])


def test_a_label_that_the_tree_does_not_know_stands_alone():
    assert with_ancestors(["poems"], TREE) == {"poems"} and ancestors("cars", TREE) == ["sport", "all"]


def test_a_circle_is_an_error():
    """It would be walked for ever."""
    with pytest.raises(ValueError, match="'c' is above itself"):
        ancestors("b", {"a": "b", "b": "c", "c": "a"})


def test_the_tree_of_a_model_numbers_labels_first_and_what_is_above_them_behind():
    """Scores stand in the order of the labels; an ancestor may be one of them."""
    tree = LabelTree(["cars", "hockey", "poems", "science", "space"], TREE)
    assert tree.nodes == ["cars", "hockey", "poems", "science", "space", "all", "sport"]
    assert tree.paths == [[6, 5], [6, 5], [], [5], [3, 5], [], [5]]
    assert tree.edges == [(6, 0), (6, 1), (5, 3), (3, 4), (5, 6)]
    assert LabelTree(["a", "b"], {}).edges == []
