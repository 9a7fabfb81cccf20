"""The command as people use it, in a process and a folder of its own: real architectures, real data
of the mini tier, tiny cells."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.records import Record, Store

ROOT = Path(__file__).resolve().parent.parent
TINY = ("--max-train", "100", "-o", "kim_cnn_rand.maps=8")
NO_MLFLOW = ("--mlflow", "none")
Command = Callable[..., subprocess.CompletedProcess[str]]

BAD = """
import time
from harness.kinds import TextEncoder
from harness.registry import register


@register("raises", name="Raises", kind="text", paper="none", source="test", year=2026)
class Raises(TextEncoder):
    def __init__(self, width: int):
        raise RuntimeError("no such layer")


@register("hangs", name="Hangs", kind="text", paper="none", source="test", year=2026)
class Hangs(TextEncoder):
    size = 4

    def forward(self, words):
        time.sleep(600)
"""


@pytest.fixture
def archbench(tmp_path: Path) -> Command:
    """Runs one command line in the test's folder."""
    environment = {name: value for name, value in os.environ.items() if name != "ARCHBENCH_DATA"}
    environment |= {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "harness.cli", *arguments]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=300
        )

    return call


def records(folder: Path) -> dict[tuple[str, str], Record]:
    return {(record.architecture, record.task): record for record in Store(folder / "results").all()}


def runs(folder: Path) -> list:
    """The cells' runs (not the grids') that MLflow's own client reads from the results folder's
    database."""
    from mlflow.tracking import MlflowClient

    client = MlflowClient(f"sqlite:///{folder / 'results' / 'mlflow.db'}")
    found = [
        run for experiment in client.search_experiments() for run in client.search_runs([experiment.experiment_id])
    ]
    return [run for run in found if "record_key" in run.data.tags]


@pytest.mark.slow
def test_a_grid_runs_is_logged_and_is_not_computed_twice(archbench, tmp_path):
    grid = ("run", "-a", "kim_cnn_rand,avg_vectors", "-t", "sst2,wikiqa", "--workers", "2", *TINY)
    first = archbench(*grid)
    assert first.returncode == 0, first.stdout + first.stderr
    found = records(tmp_path)
    assert {pair: record.status for pair, record in found.items()} == {
        (architecture, task): "ok" for architecture in ("kim_cnn_rand", "avg_vectors") for task in ("sst2", "wikiqa")
    }
    assert all(record.partial and record.counts["train"] <= 100 for record in found.values())
    assert found["kim_cnn_rand", "sst2"].hyperparameters["maps"] == 8

    logged = {run.data.tags["record_key"]: run for run in runs(tmp_path)}
    assert set(logged) == {record.key for record in found.values()}, "one run per record, in one database"
    for record in found.values():
        told = logged[record.key].data.metrics
        assert any(value == pytest.approx(record.scores["test"][record.main_metric]) for value in told.values()), told

    written = {path: path.stat().st_mtime_ns for path in (tmp_path / "results" / "records").rglob("*.json")}
    again = archbench(*grid)
    assert (again.returncode, "0 cells run" in again.stdout) == (0, True), again.stdout
    assert written == {path: path.stat().st_mtime_ns for path in (tmp_path / "results" / "records").rglob("*.json")}


@pytest.mark.slow
def test_a_plugin_that_raises_and_one_that_hangs_cost_their_own_cells_only(archbench, tmp_path):
    """The limit is for the cell that hangs alone: a loaded machine may take longer than that for a
    sound one."""
    (tmp_path / "bad.py").write_text(BAD)
    cells = ("-t", "sst2", "--plugin", "bad.py", "--max-train", "100", *NO_MLFLOW)
    limited = archbench("run", "-a", "hangs", "--timeout", "3", *cells)
    done = archbench("run", "-a", "raises,hangs,avg_vectors", "--workers", "2", *cells)
    found = {architecture: record for (architecture, _), record in records(tmp_path).items()}
    assert {name: record.status for name, record in found.items()} == {
        "raises": "failed",
        "hangs": "timeout",
        "avg_vectors": "ok",
    }
    assert (limited.returncode, done.returncode) == (1, 1)
    assert (found["raises"].error["type"], found["raises"].error["message"]) == ("RuntimeError", "no such layer")
    assert "no such layer" in (tmp_path / "results" / found["raises"].error["log"]).read_text()
    assert "--timeout" in found["hangs"].error["message"] and "--timeout" in limited.stdout
    assert "no such layer" in done.stdout and "Traceback" not in done.stdout + done.stderr


@pytest.mark.slow
def test_one_new_file_is_a_new_architecture_and_mlflow_may_be_down(archbench, tmp_path):
    """The file that `new` writes passes `check` and gives an ok record in `run`; the mirror
    that failed is repaired by `sync`."""
    assert archbench("new", "one_file", "--kind", "text", "--out", "mine").returncode == 0
    checked = archbench("check", "one_file", "--plugin", "mine/one_file.py")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "failed" not in checked.stdout and "padding changes nothing" in checked.stdout

    unreachable = ("--mlflow", "http://127.0.0.1:9")
    ran = archbench(
        "run", "-a", "one_file", "-t", "sst2", "--plugin", "mine/one_file.py", "--max-train", "100", *unreachable
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    [record] = records(tmp_path).values()
    assert (record.status, record.architecture, record.partial) == ("ok", "one_file", True)
    assert record.hyperparameters["hidden"] == 100, "the default of the file itself"
    assert 0 <= record.scores["test"]["accuracy"] <= 1
    assert "archbench sync" in ran.stderr and "127.0.0.1:9" in ran.stderr

    synced = archbench("sync")
    assert synced.returncode == 0, synced.stderr
    assert "1 runs added" in synced.stdout
    assert len(runs(tmp_path)) == 1


def test_a_slip_is_answered_with_what_was_meant(archbench, tmp_path):
    """The exit code is that of the process; other slips are tried without one."""
    done = archbench("run", "-a", "bilsm", "-t", "sst2", *NO_MLFLOW)
    answered = "did you mean bilstm" in done.stderr
    assert (done.returncode, answered, "Traceback" in done.stderr) == (2, True, False), done.stderr
    assert records(tmp_path) == {}


def test_a_data_file_that_is_missing_is_named(archbench, tmp_path):
    """With the path that was looked for, so that the user sees which folder was meant."""
    (tmp_path / "data" / "sst").mkdir(parents=True)
    done = archbench("run", "-a", "avg_vectors", "-t", "sst2", "--tier", "local", "--data-dir", "data", *NO_MLFLOW)
    assert done.returncode == 2
    assert not records(tmp_path), "a wrong folder is no result of the model"
    assert "data/sst/trees/train.txt: no such file" in done.stderr.replace("\n", "")
