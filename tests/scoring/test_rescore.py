"""Rescoring: a corrected metric reaches the records without training, and only where data and
predictions are the ones used."""

from __future__ import annotations

import dataclasses
import json
import warnings
from pathlib import Path

import pytest

from harness import registry
from harness.records import Cell, Record, Store
from harness.records.code_digest import code_of_cell
from harness.records.record import SINCE_2
from harness.scoring.rescore import rescore
from harness.task import SUPPORTING_FACTS, fingerprint

PLUGIN = """
import json
from harness.registry import register_task
from harness.task import Task

@register_task("colours", name="Colours", type="classify", metrics=("accuracy", "macro_f1"), main_metric="accuracy",
               sizes={"train": 4, "dev": 4, "test": 4}, epochs=1, protocol="made for a test")
class Colours(Task):
    def local(self, folder, split):
        return json.loads((folder / f"{split}.json").read_text())
"""
ROWS = [{"id": f"t{i}", "text": "a word", "label": label} for i, label in enumerate(["red", "red", "blue", "blue"])]
PREDICTED = {"t3": "blue", "t0": "red", "t2": "red", "t1": "red"}  # by id, in an order that is not the file's
RIGHT = {"accuracy": 3 / 4, "macro_f1": (4 / 5 + 2 / 3) / 2}


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the test split of a task that a plugin file adds."""
    plugin = tmp_path / "colours.py"
    plugin.write_text(PLUGIN)
    monkeypatch.setattr("harness.registry.finding._plugins", [])
    registry.add_plugin(plugin)
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "test.json").write_text(json.dumps(ROWS))
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "results")


def trained(
    store: Store, scores: dict[str, float], predictions: dict[str, str] = PREDICTED, seed: int = 0, status: str = "ok"
) -> Path:
    """Write the record of a cell that was scored when the metrics still gave ``scores``."""
    cell = Cell("dan", 1, "colours", 1, "local", "equal", {}, seed)
    record = Record.skeleton(
        cell, status, scores={"dev": {"accuracy": 0.25}, "test": scores}, data={"test": fingerprint(ROWS)}
    )
    record.predictions = store.save_predictions(cell, list(predictions), list(predictions.values()))
    return store.write(record)


def test_scores_are_corrected_by_example_id(store: Store, data: Path):
    """After a metric is fixed or added, the record holds what the fixed metric says; other scores
    stay, and so do sound records."""
    wrong = trained(store, {"accuracy": 0.5, "macro_f1": RIGHT["macro_f1"], "other": 0.125})
    old = trained(store, {"accuracy": 0.75}, seed=1)
    sound = trained(store, RIGHT, seed=2)
    before = sound.read_bytes()
    changes = dict(rescore(store, data))
    assert changes == {
        wrong: {"accuracy": (0.5, pytest.approx(0.75))},
        old: {"macro_f1": (None, pytest.approx(RIGHT["macro_f1"]))},
    }
    assert store.read(wrong).scores == {"dev": {"accuracy": 0.25}, "test": pytest.approx(RIGHT | {"other": 0.125})}
    assert store.read(old).scores["test"] == pytest.approx(RIGHT)
    assert sound.read_bytes() == before
    assert rescore(store, data) == []


def test_a_record_of_schema_1_keeps_its_schema(store: Store, data: Path):
    """A corrected metric changes one line of an old record; facts that it never held are not made
    up."""
    path = trained(store, {"accuracy": 0.5, "macro_f1": RIGHT["macro_f1"]})
    fields = json.loads(path.read_text())
    fields = {name: value for name, value in fields.items() if name not in SINCE_2}
    path.write_text(json.dumps(fields | {"schema": 1}, indent=1, sort_keys=True) + "\n")
    before = path.read_text()
    assert [changed for changed, _ in rescore(store, data)] == [path]
    assert path.read_text() == before.replace('"accuracy": 0.5,', '"accuracy": 0.75,') != before


def test_only_the_chosen_and_the_ok_records_are_rescored(store: Store, data: Path):
    """A failed cell has no score to correct, and a user may fix one architecture's records
    alone."""
    first, second = trained(store, {"accuracy": 0.0}), trained(store, {"accuracy": 0.0}, seed=1)
    failed = trained(store, {}, seed=2, status="failed")
    assert [path for path, _ in rescore(store, data, only=lambda record: record.seed == 1)] == [second]
    assert store.read(first).scores["test"] == {"accuracy": 0.0}
    assert store.read(failed).scores["test"] == {}


def left_alone(store: Store, data: Path | None, path: Path, complaint: str) -> None:
    before = path.read_bytes()
    with pytest.warns(UserWarning, match=complaint):
        assert rescore(store, data) == []
    assert path.read_bytes() == before


def test_other_data_are_refused(store: Store, data: Path):
    """Old predictions scored on new labels would be a number without meaning."""
    path = trained(store, {"accuracy": 0.0})
    (data / "test.json").write_text(json.dumps([row | {"label": "blue"} for row in ROWS]))
    left_alone(store, data, path, f"{path} not rescored: the test data are")


def test_other_predictions_are_refused_and_the_rest_rescored(store: Store, data: Path):
    """A predictions file that was exchanged is not what the model said; it must not stop the sound
    records."""
    exchanged, sound = trained(store, {"accuracy": 0.0}), trained(store, {"accuracy": 0.0}, seed=1)
    store.save_predictions(store.read(exchanged), list(PREDICTED), ["blue"] * 4)
    with pytest.warns(UserWarning, match=f"{exchanged} not rescored: .*SHA-256"):
        assert [path for path, _ in rescore(store, data)] == [sound]
    assert store.read(exchanged).scores["test"] == {"accuracy": 0.0}


def test_incomplete_predictions_are_refused(store: Store, data: Path):
    """A score over a part of the test split is no test score."""
    path = trained(store, {"accuracy": 0.0}, {"t0": "red"})
    left_alone(store, data, path, "for 1 examples that are not the 4")


@pytest.mark.parametrize("folder", [None, "nowhere"])
def test_missing_data_are_reported(store: Store, data: Path, folder: str | None):
    """Rescoring without the corpus says which task could not be read, and how many records wait for
    it."""
    path = trained(store, {"accuracy": 0.0})
    left_alone(
        store,
        data / folder if folder else None,
        path,
        r"colours \(local\): 1 records not rescored: .*(--data-dir|nowhere)",
    )


def test_record_of_an_unknown_task_is_reported(store: Store, data: Path, monkeypatch: pytest.MonkeyPatch):
    """Records of a plugin's task stay as they are when the plugin was not given."""
    path = trained(store, {"accuracy": 0.0})
    monkeypatch.setattr("harness.registry.finding._plugins", [])
    left_alone(store, data, path, "no task is called 'colours'")


def with_code(store: Store, folder: Path, **fields: object) -> Path:
    """A sound record of an architecture and of a task whose digests were others."""
    for split in ("train", "dev"):
        (folder / f"{split}.json").write_text(json.dumps(ROWS))
    record = store.read(trained(store, RIGHT))
    record.data = dict.fromkeys(("train", "dev", "test"), fingerprint(ROWS))
    record.code, record.main_metric = {"architecture": "a" * 64, "task": "b" * 64, "harness": 1}, "accuracy"
    return store.write(record.model_copy(update=fields))


def test_a_task_that_was_edited_and_reads_the_same_rows_is_the_task_of_its_records(store: Store, data: Path):
    """Two of five records of a results folder were marked as made by other code, since the corpus
    of another tier had changed in the same file; `--changed` would have trained them all anew."""
    path = with_code(store, data)
    before = store.read(path)
    now = code_of_cell(before)["task"]
    assert rescore(store, data) == [(path, {})]
    after = store.read(path)
    assert after.code == {"architecture": "a" * 64, "task": now, "harness": 1}
    assert after.model_copy(update={"code": before.code}) == before
    assert rescore(store, data) == []


def test_rows_of_a_companion_are_looked_at_too(store: Store, data: Path):
    """An edit of one task marked what was trained beside it, and nothing but a training took the
    mark away."""
    path = with_code(store, data, companions=[{"task": "colours", "version": 1, "train": fingerprint(ROWS)}])
    assert rescore(store, data) == [(path, {})]


@pytest.mark.parametrize(
    "fields",
    [
        {"data": dict.fromkeys(("train", "dev", "test"), fingerprint(ROWS)) | {"train": "c" * 64}},
        {"data": dict.fromkeys(("train", "dev", "test"), fingerprint(ROWS)) | {"unlabelled": "c" * 64}},
        {"data": {"test": fingerprint(ROWS)}},
        {"main_metric": "macro_f1"},
        {"companions": [{"task": "colours", "version": 1, "train": "c" * 64}]},
        {"companions": [{"task": "sst2", "version": 1, "train": "c" * 64}]},
    ],
    ids=("train", "texts without labels", "not recorded", "chosen by another metric", "companion", "not at hand"),
)
def test_a_task_that_may_give_something_else_now_is_another(store: Store, data: Path, fields: dict[str, object]):
    """Nobody knows whether the training would be the same."""
    path = with_code(store, data, **fields)
    before = path.read_bytes()
    assert rescore(store, data) == [] and path.read_bytes() == before


def test_an_architecture_that_is_shown_what_no_digest_tells_of_keeps_its_mark(store: Store, data: Path, monkeypatch):
    path = with_code(store, data)
    entry = registry.entry("architectures", "dan")
    monkeypatch.setattr(registry, "entry", shown(entry, registry.entry))
    before = path.read_bytes()
    assert rescore(store, data) == [] and path.read_bytes() == before


def shown(entry: registry.ArchitectureEntry, find):
    """A registry in which one architecture is shown supporting facts."""
    sees = dataclasses.replace(entry, sees=(SUPPORTING_FACTS,))
    return lambda sort, id: sees if id == entry.id else find(sort, id)


def test_nothing_is_warned_about_when_all_is_well(store: Store, data: Path):
    """A warning on every call would hide the one that matters."""
    trained(store, RIGHT)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert rescore(store, data) == []


def test_outcomes_are_made_again_and_know_the_training_words(store: Store, data: Path):
    """Records made before there were outcomes get them; words are unknown only by the training set
    that the record names."""
    (data / "train.json").write_text(json.dumps([{"id": "n", "text": "a", "label": "red"}]))
    path = trained(store, RIGHT)
    record = store.read(path)
    record.data = record.data | {"train": fingerprint(json.loads((data / "train.json").read_text()))}
    store.write(record)
    other = trained(store, RIGHT, seed=1)  # its training set is not the one at hand
    assert store.load_outcomes(record) is None
    rescore(store, data)
    found = store.load_outcomes(record)
    assert dict(zip(found.units, found.numerators, strict=True)) == {"t0": 1, "t1": 1, "t2": 0, "t3": 1}
    assert found.slices["unknown words"] == [("more than 25 %", 4, 0.75)]
    assert "unknown words" not in store.load_outcomes(store.read(other)).slices
