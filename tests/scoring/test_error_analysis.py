"""Outcomes of test units: their sums are the score, and their parts are what a reader is told of
the errors."""

from __future__ import annotations

import random

import pytest

from harness import registry
from harness.errors import RecordError
from harness.metrics import score
from harness.problems import problem
from harness.records import Cell, Record, Store
from harness.records.outcomes import Outcomes
from harness.scoring.error_analysis import known_words, outcomes

TASKS = [pytest.param(entry, id=id) for id, entry in registry.entries("tasks").items() if entry.main_metric != "bleu"]
"""All but translation: BLEU is of a corpus, and no sum over units."""


def guesses(type: str, rows: list[dict], generator: random.Random) -> list:
    """Predictions of a system that is right about half the time."""

    def another(column: str):
        return generator.choice(rows)[column]

    if type == "rank":
        return [generator.choice([0.0, 0.5, 1.0]) for _ in rows]  # with equal scores
    if type == "tag":
        return [[generator.choice([tag, generator.choice(another("tags"))]) for tag in row["tags"]] for row in rows]
    if type == "extract":
        return [generator.choice([*row["answers"]["text"], "the " + row["question"], ""]) for row in rows]
    if type == "multilabel":
        return [{label: generator.random() for label in {*row["labels"], *another("labels")}} for row in rows]
    if type in ("text", "audio"):
        return [[generator.uniform(-2, 0), 1] for _ in rows]
    if type == "language_model":
        return [[generator.uniform(-2, 0) * len(row["text"]), len(row["text"])] for row in rows]
    column = {
        "classify": "label",
        "match": "label",
        "answer": "answer",
        "transcribe": "transcript",
    }[type]
    return [generator.choice([row[column], another(column)]) for row in rows]


@pytest.mark.parametrize("entry", TASKS)
def test_the_sums_over_units_are_the_score_of_the_main_metric(entry):
    """Otherwise intervals and tests would be of another number than the one they stand beside."""
    rows = registry.load(entry)(entry).load("test", "mini").to_list()
    predictions = guesses(entry.type, rows, random.Random(1))
    found = outcomes(problem(entry.type), entry.main_metric, predictions, rows, None)
    assert found.score == pytest.approx(score([entry.main_metric], predictions, rows)[entry.main_metric])
    assert 0.05 < found.score < 1.5, "a guess that is never or always right tests nothing"
    groups = (
        [row["group"] for row in rows if row["label"] == "1"] if entry.type == "rank" else [row["id"] for row in rows]
    )
    assert found.units == list(dict.fromkeys(groups)) or (entry.type == "rank" and set(found.units) == set(groups))


@pytest.mark.parametrize("entry", TASKS)
def test_parts_by_property_add_up(entry):
    """Every unit is in one part of each property (spans and labels are parts of their own); a part
    that is lost hides its errors."""
    rows = registry.load(entry)(entry).load("test", "mini").to_list()
    found = outcomes(
        problem(entry.type),
        entry.main_metric,
        guesses(entry.type, rows, random.Random(1)),
        rows,
        known_words(problem(entry.type), rows[:5]),
    )
    for name in found.slices.keys() - {"entity type", "label"}:
        assert sum(n for _, n, _ in found.slices[name]) == len(found.units), name
    if found.confusion:
        assert sum(map(sum, found.confusion[1])) == len(rows)


def test_a_hand_worked_classification():
    """Words of the training rows are known in any case; 1 of 3 words unknown is more than 25 %."""
    rows = [
        {"id": "1", "text": "good film", "label": "pos"},
        {"id": "2", "text": ["Bad", "film", "indeed"], "label": "neg"},
        {"id": "3", "text": "good good good good good film", "label": "pos"},
    ]
    known = known_words(problem("classify"), [{"text": "GOOD bad film"}])
    found = outcomes(problem("classify"), "accuracy", ["pos", "pos", "pos"], rows, known)
    assert found.units == ["1", "2", "3"]
    assert found.numerators.tolist() == [1, 0, 1]
    assert found.slices == {
        "length in words": [("up to 5", 2, 0.5), ("6 to 10", 1, 1.0)],
        "unknown words": [("none", 2, 1.0), ("more than 25 %", 1, 0.0)],
        "class": [("neg", 1, 0.0), ("pos", 2, 1.0)],
    }
    assert found.confusion == (["neg", "pos"], [[0, 1], [0, 2]])


def test_spans_count_by_type():
    """One LOC of two found, a PER where there is none: F1 2/3 and 0; overall 2 / (2 + 2)."""
    rows = [{"id": "1", "text": list("abc"), "tags": ["S-LOC", "O", "S-LOC"]}]
    found = outcomes(problem("tag"), "span_f1", [["S-LOC", "S-PER", "O"]], rows, None)
    assert (found.numerators.tolist(), found.denominators.tolist()) == ([2], [4])
    assert found.slices["entity type"] == [("LOC", 2, pytest.approx(2 / 3)), ("PER", 0, 0.0)]


def test_dependent_units_are_in_one_cluster():
    """Taken as independent, five questions of one story would count as five stories."""
    rows = [
        {"id": str(i), "facts": ["x"], "question": "y", "answer": "z", "skill": "a", "story": story}
        for i, story in enumerate("uvuw")
    ]
    found = outcomes(problem("answer"), "skill_accuracy", ["z"] * 4, rows, None)
    assert found.clusters == [0, 1, 0, 2]
    assert Outcomes.from_json(found.to_json([]), found.units).clusters == [0, 1, 0, 2]
    alone = [{name: value for name, value in row.items() if name != "story"} for row in rows]
    assert outcomes(problem("answer"), "skill_accuracy", ["z"] * 4, alone, None).clusters is None
    older = {name: value for name, value in found.to_json([]).items() if name != "clusters"}
    assert Outcomes.from_json(older, found.units).clusters is None


@pytest.mark.parametrize(("task", "type"), [("an4", "transcribe"), ("fsdd_class", "classify")])
def test_recordings_of_one_speaker_are_in_one_cluster(task, type):
    """As independent, 300 recordings of six voices would tell more apart than they do."""
    entry = registry.entry("tasks", task)
    rows = registry.load(entry)(entry).load("test", "mini").to_list()
    found = outcomes(problem(type), entry.main_metric, ["x"] * len(rows), rows, None)
    assert len(set(found.clusters)) == len({row["speaker"] for row in rows}) < len(rows)


def test_a_metric_that_is_no_ratio_of_sums_has_no_outcomes():
    assert outcomes(problem("classify"), "macro_f1", ["a"], [{"id": "1", "text": "x", "label": "a"}], None) is None


ROWS = [{"id": f"e{i}", "text": "x", "label": "ab"[i % 2]} for i in range(4)]


def recorded(store: Store) -> tuple[Record, Cell]:
    cell = Cell("dan", 1, "sst2", 1, "mini", "smoke", {}, 0)
    saved = store.save_predictions(cell, [row["id"] for row in ROWS], ["a"] * 4)
    store.save_outcomes(
        cell, saved, [row["id"] for row in ROWS], outcomes(problem("classify"), "accuracy", ["a"] * 4, ROWS, None)
    )
    return Record.skeleton(cell, "ok", predictions=saved), cell


def test_what_is_saved_is_what_is_loaded(tmp_path):
    store = Store(tmp_path)
    record, _ = recorded(store)
    found = store.load_outcomes(record)
    assert found.units == ["e0", "e1", "e2", "e3"]
    assert found.numerators.tolist() == [1, 0, 1, 0]
    assert found.denominators.tolist() == [1, 1, 1, 1]
    assert found.slices["class"] == [("a", 2, 1.0), ("b", 2, 0.0)]
    assert found.confusion == (["a", "b"], [[2, 0], [2, 0]])


def test_outcomes_of_other_predictions_are_not_shown(tmp_path):
    """A cell that was run again has new predictions: the old intervals are not theirs."""
    store = Store(tmp_path)
    record, cell = recorded(store)
    again = store.save_predictions(cell, [row["id"] for row in ROWS], ["b"] * 4)
    assert store.load_outcomes(record.model_copy(update={"predictions": again})) is None
    assert store.load_outcomes(record.model_copy(update={"predictions": None})) is None


def test_the_same_outcomes_are_the_same_bytes(tmp_path):
    first, second = Store(tmp_path / "a"), Store(tmp_path / "b")
    recorded(first), recorded(second)
    (one,), (other,) = (list(folder.rglob("*.outcomes.json.gz")) for folder in (tmp_path / "a", tmp_path / "b"))
    assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize("content", [b"", b"no gzip", None])
def test_a_damaged_file_is_named_with_its_cure(tmp_path, content):
    store = Store(tmp_path)
    record, _ = recorded(store)
    (path,) = tmp_path.rglob("*.outcomes.json.gz")
    path.write_bytes(path.read_bytes()[:-9] if content is None else content)
    with pytest.raises(RecordError, match=r"outcomes\.json\.gz: not outcomes .*archbench rescore"):
        store.load_outcomes(record)
