"""The order of a trial: by what records say of like tasks, and never worse than by cost alone."""

from __future__ import annotations

import math
from statistics import fmean

import pytest

from harness import registry
from harness.model_selection.candidates import PILOTS, Candidate
from harness.model_selection.evidence import (
    CHEAP,
    ONE_SIDED,
    OTHER_TYPE,
    START,
    Likeness,
    Line,
    expected,
    groups,
    likeness,
    lines,
    ordered,
)
from harness.registry import ArchitectureEntry
from harness.running.estimate import UNTRAINED, measured_speeds
from tests.model_selection.conftest import reviews

FILMS = Likeness("classify", 1000, 20, 2)


def line(task: str, id: str, score: float, read: int = 1000, words: float | None = 20, classes: int = 2) -> Line:
    return Line(f"{task}-{id}", "classify", task, "full", id, read, words, classes, score)


def candidate(id: str, work: float) -> Candidate:
    return Candidate(registry.entry("architectures", id), work)


def test_a_place_is_the_mean_over_tasks_the_nearer_the_heavier():
    """Worked by hand: the other task has four times the words, so it weighs a quarter."""
    near = [line("a", "dan", 0.9), line("a", "gru", 0.5), line("a", "rnn", 0.7)]
    far = [line("b", "dan", 0.2, words=80), line("b", "gru", 0.6, words=80)]
    places, names = expected(FILMS, [*far, *near])
    assert places == {"dan": (1 + 0) / 1.25, "gru": 0.25 / 1.25, "rnn": pytest.approx(0.5)}
    assert names == ["a (full)", "b (full)"]


def test_tasks_differ_by_doublings():
    """Spoken digits have classes and no words: they say little of films, and tags say less."""
    assert FILMS.distance(Likeness("classify", 4000, 10, 8)) == 2 + 1 + 2
    assert FILMS.distance(Likeness("classify", 1000, None, 2)) == ONE_SIDED
    assert FILMS.distance(Likeness("multilabel", 1000, 20, None)) == OTHER_TYPE + ONE_SIDED
    assert Likeness("rank", 500, 30, None).distance(Likeness("rank", 500, 30, None)) == 0
    assert FILMS.distance(Likeness("match", 1000, 20, 2)) == math.inf, "its rows have two texts"


def test_a_task_is_told_by_its_rows_for_training(own):
    entry = own(reviews(200)).entry
    rows = [{"text": "one two three", "label": "neg"}, {"text": "four", "label": "pos"}]
    assert likeness(entry, 100, rows) == Likeness("classify", 32_000, 2.0, 2), "1,000 steps at least"
    assert likeness(entry, 50_000, rows).read == 500_000


def test_after_the_cheap_ones_those_come_that_promise_most_for_a_second():
    found = [candidate("floor_majority", 0.0), candidate("naive_bayes", CHEAP - START)]
    found += [candidate(id, work) for id, work in (("dan", 10.0), ("rnn", 20.0), ("gru", 40.0), ("lstm", 60.0))]
    evidence = [line("a", "gru", 0.9), line("a", "dan", 0.3), line("a", "lstm", 0.88), line("a", "naive_bayes", 0.2)]
    order = ordered(found, FILMS, evidence)
    assert [each.entry.id for each in order.candidates] == [
        "floor_majority", "naive_bayes", "gru", "rnn", "lstm", "dan"
    ], "rnn has no record and keeps its place"  # fmt: skip
    assert "a (full)" in order.reason and "gru 1.00" in order.reason and "without a record (1)" in order.reason


def test_without_a_record_of_a_like_task_the_order_is_that_of_cost():
    found = [candidate("dan", 100.0), candidate("gru", 200.0)]
    order = ordered(found, Likeness("match", 1000, 20, 2), [line("a", "gru", 0.9), line("a", "dan", 0.1)])
    assert order.candidates == found and order.reason == "Order: the cheapest first."


def test_nothing_gets_lost_or_comes_twice(own):
    """A plugin without a speed is tried last of all, not never."""
    found = [candidate(id, math.inf if id == "lstm" else 50.0) for id in ("dan", "gru", "rnn", "lstm")]
    order = ordered(found, FILMS, [line("a", "lstm", 0.9), line("a", "rnn", 0.8), line("a", "gru", 0.1)])
    assert sorted(each.entry.id for each in order.candidates) == ["dan", "gru", "lstm", "rnn"]
    assert order.candidates[-1].entry.id == "lstm"


def works(group: list[Line]) -> list[Candidate]:
    """The architectures of a task's records that are registered, by their cost there."""
    speeds, entries = measured_speeds(), registry.entries("architectures")
    found = []
    for id in dict.fromkeys(one.architecture for one in group):
        entry = entries.get(id)
        if isinstance(entry, ArchitectureEntry) and entry.kind != "floor" and id in speeds:
            read = group[0].read / 10 if entry.kind in UNTRAINED else PILOTS * group[0].read
            found.append(Candidate(entry, read / speeds[id]))
    return sorted(found, key=lambda each: each.work)


def gained(found: list[Candidate], places: dict[str, float], seconds: float) -> float:
    """Mean place of the best one so far, over so many seconds of one cell after the other."""
    best, spent, area = 0.0, 0.0, 0.0
    for each in found:
        took = min(START + each.work, seconds - spent)
        area, spent = area + best * took, spent + took
        best = max(best, places[each.entry.id])
    return (area + best * (seconds - spent)) / seconds


def test_the_order_is_no_worse_than_by_cost_on_the_tasks_that_have_records():
    """Each corpus as a user's, foretold from the others: SST-2 and SST-5 are the same sentences."""
    gains = []
    for (task, _), group in groups(lines()).items():
        others = [one for one in lines() if one.task[:3] != task[:3]]
        words = [one.words for one in group if one.words]
        classes = [one.classes for one in group if one.classes]
        like = Likeness(group[0].type, group[0].read, words[0] if words else None, classes[0] if classes else None)
        by_cost = works(group)
        order = ordered(by_cost, like, others).candidates
        places, _ = expected(like, group)
        if like.type not in ("classify", "match", "rank") or order == by_cost:
            continue
        gains += [gained(order, places, time) - gained(by_cost, places, time) for time in (150.0, 300.0, 600.0)]
    assert len(gains) > 9 and fmean(gains) >= 0.0 and min(gains) > -0.03, gains


def test_the_table_names_what_is_registered():
    """A misread column would make all places those of other architectures."""
    known = set(registry.entries("architectures"))
    assert {one.architecture for one in lines()} & known and len(lines()) > 300
    assert all(one.read > 0 and -1e6 < one.score <= 1.0 for one in lines())
    assert {one.type for one in lines()} <= set(registry.entries("problems"))
