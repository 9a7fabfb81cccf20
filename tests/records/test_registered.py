"""What a record says that its training saw: who compares rows trusts that no other saw more."""

from __future__ import annotations

import pytest

from harness.records import Cell
from harness.records.registered import registered, seen
from harness.task import WITHOUT_LABELS


@pytest.mark.parametrize(
    ("architecture", "limits", "sees"),
    [
        ("vat", {"max_train": None, "max_epochs": None, "labels": 200}, [WITHOUT_LABELS]),
        ("vat_scaled", {"max_train": 500, "max_epochs": None, "labels": 200}, [WITHOUT_LABELS]),
        ("vat", {"max_train": None, "max_epochs": None}, []),
        ("vat", {"max_train": 500, "max_epochs": None}, []),
        ("bilstm", {"max_train": None, "max_epochs": None, "labels": 200}, []),
        ("text_gcn", {"max_train": None, "max_epochs": None, "labels": 200}, ["texts of test"]),
        ("of_nobody", {"max_train": None, "max_epochs": None, "labels": 200}, None),
    ],
)
def test_texts_without_labels_are_seen_where_some_have_lost_theirs(architecture, limits, sees):
    """Beside a system that has 200 texts one with 7,000 would lead unseen; where all rows keep
    their labels both have the same texts."""
    assert seen(Cell(architecture, 1, "sst2", 1, "local", "equal", {"limits": limits}, 0)) == sees


def test_what_a_regime_wraps_sees_for_it():
    """A network on trees and the labels of phrases would stand among those that saw neither."""
    cell = Cell("adversarial", 1, "sst2", 1, "local", "equal", {"wraps": "tree_lstm"}, 0)
    assert seen(cell) == ["labels of phrases"]


def test_what_a_parent_saw_is_seen():
    """A student of a teacher that saw the labels of phrases stood first among those that never saw
    any."""
    teacher = {"architecture": "tree_lstm", "task": "sst2", "key": "k", "row": "r"}
    cell = Cell("xtreme_distil", 2, "sst2", 1, "local", "equal", {"parents": {"teacher": teacher}}, 0)
    assert seen(cell) == ["labels of phrases"]


def test_rows_of_companions_are_seen_too():
    cell = Cell("vat", 1, "sst2", 1, "local", "equal", {"limits": {"labels": 9}, "companions": ["imdb"]}, 0)
    assert seen(cell) == [WITHOUT_LABELS, "training rows of imdb"]


@pytest.mark.parametrize(
    ("task", "inputs"), [("sst5", ["text", "tree"]), ("fsdd_class", ["audio"]), ("snli", ["text"])]
)
def test_the_forms_of_a_task_are_told(task, inputs):
    """Pages import no task, and would count recordings among texts."""
    found = registered(Cell("bilstm", 1, task, 1, "local", "equal", {}, 0))
    assert found and found["task"]["inputs"] == inputs
