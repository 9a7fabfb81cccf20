"""Everything around a grid going wrong: the disk, the results folder, MLflow, the clock, and
plugins that touch what is not theirs."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

from harness.records import Store
from tests.faults.grids import CELLS, GRID, Row, finish, resize, results_of, start
from tests.support.servers import answers, free_port


def test_a_full_disk_costs_the_cells_that_met_it_and_no_more(small_disk: Path, completed):
    """Nothing half-written counts as a result, and once there is room, the same command completes
    the grid."""
    code, told = finish(small_disk, *GRID)
    assert code == 1, "cells that could not be stored are not ok"
    store = Store(small_disk)
    assert all(record.status != "ok" or store.load_predictions(record) for record in store.all())
    assert not store.damaged
    assert "No space left" in told, "the cause is told"
    resize(small_disk, "size=200m")
    completed(small_disk, "disk full", 1, "--retry-failed")


def test_a_results_folder_that_is_read_only_is_refused_before_anything_is_computed(small_disk: Path, table: list[Row]):
    resize(small_disk, "ro")
    code, told = finish(small_disk, *GRID)
    assert code == 2
    assert "is not writable" in told and "--results" in told
    table.append(Row("read-only results folder", 1, 0))


def test_an_mlflow_server_that_dies_costs_no_record(tmp_path: Path, completed):
    """Said once; the grid goes on, and `archbench sync` fills the mirror later."""
    address = f"http://127.0.0.1:{(number := free_port())}"
    command = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", f"sqlite:///{tmp_path / 'server.db'}"]
    command += ["--host", "127.0.0.1", "--port", str(number), "--workers", "1"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        answers(address, server)
        grid = list(GRID)
        grid[grid.index("none")] = address
        run = start(tmp_path / "results", *grid)
        while not list((tmp_path / "results" / "records").rglob("*.json")):
            assert run.poll() is None
            time.sleep(0.1)
    finally:
        os.killpg(server.pid, 9)
        server.wait()
    told, _ = run.communicate(timeout=600)
    assert run.returncode == 0, told
    assert told.count("archbench sync") == 1
    completed(tmp_path / "results", "MLflow server killed in the middle of a grid", 1)


def test_a_locked_database_costs_no_record(tmp_path: Path, completed):
    """Another program holds MLflow's SQLite file for as long as the grid runs."""
    results = tmp_path / "results"
    mirrored = [part for part in GRID if part not in ("--mlflow", "none")]
    finish(results, *mirrored[:2], "avg_vectors", *mirrored[3:6], "0", *mirrored[7:-2])  # makes the database
    with sqlite3.connect(results / "mlflow.db", isolation_level=None) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        code, told = finish(results, *mirrored)
        holder.execute("ROLLBACK")
    assert code == 0, told
    assert "archbench sync" in told
    completed(results, "MLflow's database locked", 1)


CLOCK = """
import time
_real, _began = time.time, time.time()
def _jumping():
    now = _real()
    return now - 86400.0 if int(now - _began) % 2 else now
time.time = _jumping
"""


def test_a_clock_that_jumps_costs_nothing(tmp_path: Path, completed):
    """A day back and forth every second: times in records stay positive, nothing waits for a moment
    that has passed."""
    (tmp_path / "sitecustomize.py").write_text(CLOCK)
    path = os.pathsep.join([str(tmp_path), str(Path(__file__).resolve().parents[2])])
    results = tmp_path / "results"
    code, told = finish(results, *GRID, env={"PYTHONPATH": path})
    assert code == 0, told
    for record in Store(results).all():
        assert all(seconds >= 0 for seconds in record.seconds.values())
    completed(results, "clock jumping a day back and forth", 1)


RUDE = '''
"""Changes what belongs to all."""
import os
import torch
from torch import Tensor
from harness.kinds import TextEncoder, pool
from harness.registry import register

@register("rude", name="Rude", kind="text", paper="nobody 2026", source="none", year=2026, tiny={})
class Rude(TextEncoder):
    """Mean of word vectors, from a class that changes the world."""

    def __init__(self, width: int):
        super().__init__()
        torch.set_default_dtype(torch.float64)
        torch.use_deterministic_algorithms(True)
        torch.manual_seed(1)
        torch.set_num_threads(7)
        torch.Tensor.__add__ = lambda a, b: a
        os.environ["ARCHBENCH_DATA"] = "/nowhere"
        os.chdir("/")
        self.size = width

    def forward(self, words) -> Tensor:
        return pool(words.vectors, words.mask, "mean")
'''


def test_a_plugin_that_changes_global_state_changes_no_other_cell(tmp_path: Path, undisturbed, table: list[Row]):
    """Its own cell may end as it likes; the others score what they always score, to the last
    bit."""
    plugin = tmp_path / "rude.py"
    plugin.write_text(RUDE)
    grid = list(GRID)
    grid[2] = "rude," + grid[2]
    code, told = finish(tmp_path / "results", *grid, "--plugin", str(plugin))
    assert code in (0, 1), told
    found = results_of(tmp_path / "results")
    assert {pair: result for pair, result in found.items() if pair[0] != "rude"} == undisturbed
    table.append(Row("plugin that changes torch, threads, environment and directory", 3, CELLS))


def test_damaged_and_foreign_files_are_named_and_left_alone(tmp_path: Path, completed):
    """A cell whose record is damaged waits for its owner; everything else runs."""
    finish(tmp_path, *GRID)
    records = sorted((tmp_path / "records").rglob("*.json"))
    content = records[0].read_bytes()
    records[0].write_bytes(content[: len(content) // 2])
    foreign = tmp_path / "records" / "notes.json"
    foreign.write_text('{"mine": true}')
    code, told = finish(tmp_path, *GRID)
    assert (code, str(records[0]) in told) == (1, True)
    assert records[0].read_bytes() == content[: len(content) // 2]
    assert foreign.read_text() == '{"mine": true}'
    records[0].write_bytes(content)
    foreign.unlink()
    completed(tmp_path, "record cut in half, and a foreign file", 2)
