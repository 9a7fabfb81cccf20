"""Nothing outlives the cell or the run that it belongs to, whatever state it is in and wherever it
has hidden."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from harness.running.engines import local

FAKE = "tests.support.fake_cells:run_cell"
pytestmark = [
    pytest.mark.usefixtures("light_server"),
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process adopt orphans"),
]


@pytest.fixture
def settings(make_settings):
    made = make_settings()
    made.work.mkdir(parents=True)
    return made


def alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def all_gone(processes: list[psutil.Process], seconds: float = 3.0) -> bool:
    deadline = time.monotonic() + seconds
    while any(map(alive, processes)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not any(map(alive, processes))


def daemon_of(settings) -> psutil.Process | None:
    """The process that a cell hid; None where it is gone already."""
    try:
        return psutil.Process(int((settings.work / "daemon.pid").read_text()))
    except psutil.NoSuchProcess:
        return None


RUN = """
import sys
sys.path.insert(0, ".")
from pathlib import Path
from harness.running.engines import local
from harness.running.worker_settings import Settings
from harness.records import Cell
local.PRELOAD, results = ["harness.running.engines.local"], Path(sys.argv[1])
settings = Settings(results, None, (), 1, None, None, results / "work")
cell = Cell(sys.argv[2], 1, "sst2", 1, "mini", "smoke", eval(sys.argv[3]), 0)
local.run([cell], settings, workers=1, function="tests.support.fake_cells:run_cell")
"""


def started(settings, name: str, hyperparameters: dict) -> tuple[subprocess.Popen, list[psutil.Process]]:
    """A run whose one cell is in its middle by now, and every process below the run."""
    arguments = [str(settings.results), name, repr(hyperparameters)]
    run = subprocess.Popen([sys.executable, "-c", RUN, *arguments], start_new_session=True)
    log = settings.work / "logs"
    deadline = time.monotonic() + 30
    while not (log.is_dir() and any(path.stat().st_size for path in log.iterdir())):
        assert run.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    if "daemon" in hyperparameters:
        while not (settings.work / "daemon.pid").exists():
            time.sleep(0.01)
    time.sleep(0.1)  # from the first line of its log to what it does
    below = psutil.Process(run.pid).children(recursive=True)
    daemon = daemon_of(settings) if "daemon" in hyperparameters else None
    return run, [*below, daemon] if daemon else below


@pytest.mark.parametrize(
    ("name", "hyperparameters"), [("holds_gil", {}), ("stops", {}), ("sleeps", {"daemon": 0}), ("stops", {"daemon": 0})]
)
def test_a_killed_run_leaves_nothing_whatever_its_cell_is_doing(settings, name, hyperparameters):
    """In C code without an end, stopped, and with a process that hid: the next run would start the
    cell beside itself."""
    run, below = started(settings, name, hyperparameters)
    run.kill()
    run.wait()
    assert all_gone(below)


@pytest.mark.usefixtures("of_a_terminal")
def test_a_closed_terminal_ends_the_cells_in_order(settings):
    """It reaches the whole process group; a fork server that died of it could end nothing below
    itself."""
    run, below = started(settings, "sleeps", {"daemon": 0})
    os.killpg(run.pid, signal.SIGHUP)
    run.wait(timeout=20)
    assert all_gone(below)
    [record] = settings.results.rglob("records/**/*.json")
    assert "stopped by the user" in record.read_text()


@pytest.mark.parametrize("name", ["fine", "segfaults"])
def test_a_process_in_a_session_of_its_own_ends_with_its_cell(make_cell, settings, name):
    [record] = local.run([make_cell(name, hyperparameters={"daemon": 0})], settings, workers=1, function=FAKE)
    assert record.status == ("ok" if name == "fine" else "failed")
    assert daemon_of(settings) is None


def test_a_neighbour_of_a_cell_that_left_something_runs_on(make_cell, settings):
    cells = [make_cell("fine", hyperparameters={"daemon": 0}), make_cell("sleeps", hyperparameters={"seconds": 0.8})]
    records = local.run(cells, settings, workers=2, function=FAKE)
    assert [record.status for record in records] == ["ok", "ok"]


def test_the_memory_of_a_hidden_process_counts(make_cell, settings, monkeypatch):
    monkeypatch.setattr(local, "USAGE_POLL_S", 0.05)
    limited = type(settings)(**vars(settings) | {"memory_limit_mib": 300})
    cell = make_cell("sleeps", hyperparameters={"daemon": 400, "seconds": 20})
    [record] = local.run([cell], limited, workers=1, function=FAKE)
    assert record.status == "oom"
    assert daemon_of(settings) is None
