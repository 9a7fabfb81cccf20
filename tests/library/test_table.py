"""``archbench.results``: records as a tidy table."""

from __future__ import annotations

import json

import pandas as pd
import pytest

import archbench
from archbench import table as tables
from harness.errors import LeaderboardError
from harness.leaderboard import board as boards
from harness.records import Store
from tests.support.made_records import record

SCORES = {"dev": {"accuracy": 0.75, "macro_f1": 0.7}, "test": {"accuracy": 0.5}}


@pytest.fixture
def store(tmp_path) -> Store:
    (tmp_path / "records").mkdir()
    return Store(tmp_path)


def test_a_row_for_each_score_with_all_axes_beside_it(store):
    """A plot of score over training examples needs no other table and no loop over files."""
    made = record(
        scores=SCORES,
        main_metric="accuracy",
        counts={"train": 1000, "dev": 100, "test": 200},
        training={"epochs": 3, "passes_per_epoch": 4},
        parameters={"total": 5000, "embedding": 4000},
        speed={"train_examples_per_second": 120.5, "latency_ms_p50": 1.5, "beside": 0, "unstable": False},
        memory={"peak_rss_mib": 300.0},
        seconds={"train": 2.5, "total": 4.0},
        environment={"device": "cpu", "cpu": "a CPU", "threads": 2},
        seed=3,
    )
    store.write(made)
    table = archbench.results(store.folder)
    assert table[["split", "metric", "value", "main"]].values.tolist() == [
        ["dev", "accuracy", 0.75, True],
        ["dev", "macro_f1", 0.7, False],
        ["test", "accuracy", 0.5, True],
    ]
    expected = {
        "task": "sst2",
        "architecture": "dan",
        "name": "Deep Averaging Network",
        "family": "feedforward",
        "kind": "text",
        "year": 2015,
        "tier": "local",
        "protocol": "equal",
        "budget": "full",
        "seed": 3,
        "status": "ok",
        "examples": 1000,
        "test_examples": 200,
        "passes": 12,
        "parameters": 5000,
        "embedding_parameters": 4000,
        "train_examples_per_second": 120.5,
        "latency_ms_p50": 1.5,
        "beside": 0,
        "unstable": False,
        "peak_rss_mib": 300.0,
        "train_seconds": 2.5,
        "seconds": 4.0,
        "cpu": "a CPU",
        "threads": 2,
        "sees": "",
        "key": made.key,
    }
    rows = table[[*expected]].to_dict("records")
    assert rows == [expected] * 3
    assert json.loads(table.hyperparameters[0]) == {"hidden": 100}


def test_a_cell_that_did_not_end_ok_has_a_row_too(store):
    """A mean over architectures that leaves out who failed would flatter them in silence."""
    error = {"type": "oom", "message": "used 900 MiB", "log": None}
    store.write(record(status="oom", error=error))
    table = archbench.results(store.folder)
    assert table[["status", "error"]].values.tolist() == [["oom", "used 900 MiB"]]
    assert table[["split", "metric", "value", "main", "group", "parameters"]].isna().all(axis=None)


def test_what_only_records_know_of_an_architecture_is_there(store):
    """Plugins of others are not installed where their results are read."""
    told = {"architecture": {"name": "Theirs", "family": "odd", "kind": "text", "paper": "-", "year": 2031}}
    store.write(record("their_model", score=0.5, registered=told))
    store.write(record("nobodys_model", score=0.5))
    table = archbench.results(store.folder).set_index("architecture")
    assert table.loc["their_model", ["name", "family", "year"]].tolist() == ["Theirs", "odd", 2031]
    assert table.loc["nobodys_model", ["name", "family", "year"]].isna().all()


def test_groups_are_those_of_the_leaderboard(store):
    """Rows of one group may be averaged and ranked, others not."""
    for architecture, protocol in (("dan", "equal"), ("lstm", "equal"), ("cnn", "paper")):
        store.write(record(architecture, score=0.5, protocol=protocol))
    table = archbench.results(store.folder).set_index("architecture")
    assert table.group["dan"] == table.group["lstm"] != table.group["cnn"]
    sections = boards.read(store.folder).sections
    ids = {result.group.id for pairs in sections.values() for results in pairs.values() for result in results}
    assert set(table.group) == ids


def test_columns_and_their_types_are_the_same_whatever_is_there(store):
    """A notebook written for full results must run on the first ones."""
    empty = archbench.results(store.folder)
    assert len(empty) == 0
    store.write(record(score=0.5))
    store.write(record("lstm", status="failed"))
    full = archbench.results(store.folder)
    assert full.dtypes.to_dict() == empty.dtypes.to_dict()
    assert isinstance(full, pd.DataFrame) and list(full.index) == [0, 1]


def test_every_column_is_documented():
    names = [*tables._COLUMNS, "split", "metric", "value", "main"]
    rest = ("train_examples_per_second", "train_tokens_per_second", "inference_examples_per_second")
    rest += ("latency_ms_p50", "latency_ms_p95", "peak_rss_mib", "peak_gpu_mib")  # "speeds, latencies, memory"
    assert [name for name in names if f"``{name}``" not in str(archbench.results.__doc__) and name not in rest] == []


def test_a_damaged_record_is_named_and_the_rest_is_there(store):
    store.write(record(score=0.5))
    (store.folder / "records" / "sst2" / "dan" / "0123456789abcdef.json").write_text("{")
    with pytest.warns(UserWarning, match=r"record skipped: .*0123456789abcdef.json"):
        assert len(archbench.results(store.folder)) == 1


def test_a_folder_that_is_not_there_is_an_error(tmp_path):
    """An empty table would be taken for a run without results."""
    with pytest.raises(LeaderboardError, match="nowhere: no such folder"):
        archbench.results(tmp_path / "nowhere")
