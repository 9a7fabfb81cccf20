"""A result of code that was changed since is shown, and said to be one."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlflow.tracking import MlflowClient

from harness.leaderboard.board import read
from harness.leaderboard.pages.task_page import task_tables
from harness.records import Store
from harness.records.code_digest import code_of_cell
from harness.tracking import Tracker, default_uri
from tests.support.fake_plugins import PLUGIN
from tests.support.made_records import record


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plugin's file."""
    file = tmp_path / "toys.py"
    file.write_text(PLUGIN)
    monkeypatch.setattr("harness.registry.finding._plugins", [file])
    return file


def test_pages_and_mlflow_tell_of_other_code(plugin: Path, tmp_path: Path):
    """An edited plugin looked as if its old score were that of the new code."""
    store = Store(tmp_path / "results")
    made = record("toy_text", "toy_topic", 0.5)
    made.code = code_of_cell(made)
    store.write(made)
    store.write(record("toy_text", "toy_topic", 0.5, hyperparameters={"hidden": 3}))  # says nothing of its code
    tracker = Tracker(default_uri(tmp_path))
    client = MlflowClient(tracking_uri=tracker.uri)

    def noted() -> list[bool]:
        (table,) = task_tables(read(store.folder), "toy_topic")
        return sorted("made by other code" in str(row.cells[0][0].notes) for row in table.blocks[0].rows)

    def tags() -> list[str]:
        tracker.sync(store)
        experiment = client.get_experiment_by_name("toy_topic").experiment_id
        found = client.search_runs([experiment], "tags.record_key != ''")
        return sorted(run.data.tags.get("made_by", "") for run in found)

    assert (noted(), tags()) == ([False, False], ["", "this code"])
    plugin.write_text(PLUGIN + "\n# a remark\n")
    assert noted() == [False, False]
    plugin.write_text(PLUGIN + "\nCHANGED = True\n")
    assert (noted(), tags()) == ([False, True], ["", "other code"])
