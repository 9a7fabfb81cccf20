"""Rescoring: a corrected metric reaches the records without training, and only where data and
predictions are the ones used."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest

from harness import registry
from harness.records import Cell, Record, Store
from harness.records.record import SINCE_2
from harness.scoring.rescore import rescore
from harness.task import fingerprint

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
