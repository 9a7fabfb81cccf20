"""Parts of the test units on the compare page: the records' own numbers, and members that fit
them."""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np
import pytest

from harness import registry
from harness.leaderboard.comparison import compare
from harness.leaderboard.examples import ExampleReader, adapter
from harness.leaderboard.pages.compare_parts import parts_of, read_parts
from harness.problems import problem
from harness.records import Store
from harness.records.outcomes import ratio
from harness.scoring import error_analysis
from harness.task import fingerprint
from tests.support.made_pages import board_of
from tests.support.made_records import record

TASK = registry.entry("tasks", "sst2")


@pytest.fixture
def made(tmp_path):
    """A board with two results on the generated corpus, scored as a run scores, and the test
    rows."""
    task, asked, store = adapter(TASK), problem("classify"), Store(tmp_path)
    train, rows = (task.load(split, "mini").to_list() for split in ("train", "test"))
    known = error_analysis.known_words(asked, train)
    for architecture, seed in (("dan", 1), ("bilstm", 2)):
        flips = np.random.default_rng(seed).random(len(rows)) < 0.3
        said = [
            {"negative": "positive", "positive": "negative"}[r["label"]] if f else r["label"]
            for r, f in zip(rows, flips, strict=True)
        ]
        outcomes = error_analysis.outcomes(asked, "accuracy", said, rows, known)
        data = {"train": fingerprint(train), "test": fingerprint(rows)}
        done = record(architecture, score=outcomes.score, tier="mini", data=data)
        done.predictions = store.save_predictions(done, outcomes.units, said)
        store.save_outcomes(done, done.predictions, outcomes.units, outcomes)
        store.write(done)
    return board_of(store, [], [TASK]), rows


def test_members_found_again_have_the_scores_that_the_records_tell(made, tmp_path):
    """A wrong member would count an error in a part where it is not."""
    board, rows = made
    (section,) = board.sections
    comparison = compare(board, section, "sst2")
    known = read_parts(board, section, "sst2", rows, ExampleReader(tmp_path))
    found = parts_of(comparison, known, [None] * len(rows))
    assert [parts.by for parts in found] == ["length in words", "unknown words", "class"]
    for parts in found:
        assert Counter(parts.members) == dict(zip(parts.names, parts.sizes, strict=True))
        for seeds, scores in zip(comparison.outcomes, parts.scores, strict=True):
            for name, score in zip(parts.names, scores, strict=True):
                where = np.array(parts.members) == name
                assert f"{100 * ratio(seeds[0].numerators[where], seeds[0].denominators[where]):.1f}" == score


def test_without_a_folder_the_right_answers_give_the_classes_alone(made):
    board, rows = made
    (section,) = board.sections
    assert read_parts(board, section, "sst2", rows, ExampleReader()) == {}
    gold = [None, *(row["label"] for row in rows[1:])]
    found = {parts.by: parts.members for parts in parts_of(compare(board, section, "sst2"), {}, gold)}
    assert found == {"length in words": None, "unknown words": None, "class": gold}


def test_members_that_are_not_as_many_as_recorded_are_not_believed(made):
    """Of equally many examples of two classes, one has moved to the other."""
    board, rows = made
    (section,) = board.sections
    members = [row["label"] for row in rows]
    members[members.index("negative")] = "positive"
    for known, gold in (({"class": members}, [None] * len(rows)), ({}, members)):
        found = {parts.by: parts.members for parts in parts_of(compare(board, section, "sst2"), known, gold)}
        assert found["class"] is None


def test_where_torch_is_missing_members_are_not_found(made, tmp_path, monkeypatch):
    board, rows = made
    (section,) = board.sections
    monkeypatch.setitem(sys.modules, "harness.problems", None)
    assert read_parts(board, section, "sst2", rows, ExampleReader(tmp_path)) == {}
