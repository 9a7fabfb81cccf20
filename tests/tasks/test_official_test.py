"""Scored examples that belong to the official test of a task."""

from __future__ import annotations

import pytest

from harness import registry
from harness.task import Task


def task(id: str) -> Task:
    entry = registry.entry("tasks", id)
    return registry.load(entry)(entry)


@pytest.mark.parametrize(
    ("id", "tier", "examples", "official"),
    [
        ("snli", "local", 9824, 9824),
        ("snli", "hub", 9824, 9824),
        ("snli", "local", 9823, 0),
        ("multi30k", "local", 1000, 1000),
        ("snli", "mini", 9824, 0),  # a generated corpus, whatever its size
        ("squad1", "local", 10570, 10570),
        ("fsdd", "local", 300, 300),
        ("fsdd_unseen", "local", 1000, 0),  # its speakers were held out by us
        ("fsdd_class_unseen", "hub", 1000, 0),
    ],
)
def test_all_examples_of_a_whole_official_test_belong_to_it_and_none_of_another(id, tier, examples, official):
    """A survey's column takes scores on the test that everyone scores, and no other."""
    assert task(id).official_test_examples(tier, examples) == official


def test_a_quarter_of_half_a_dev_set_is_no_official_test(corpora):
    squad2 = task("squad2")
    assert squad2.official_test_examples("local", len(squad2.read("test", "local", corpora))) == 0
