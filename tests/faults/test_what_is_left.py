"""Runs cut off where it hurts: nothing of them lives on, nobody waits for MLflow, and a folder that
goes away or fills up is told of."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from harness.records import Store
from tests.faults.grids import GRID, Row, cells_of, finish, resize, results_of, start

HOLD = """
import sys, time
from filelock import FileLock
FileLock(sys.argv[1]).acquire()
print("held", flush=True)
time.sleep(600)
"""

HIDING = '''
"""Leaves a process where nothing leads to it, and then never ends: in C, with the lock of Python."""
import ctypes
import os
import time
from pathlib import Path
from harness.kinds import TextEncoder
from harness.registry import register

@register("hiding", name="Hiding", kind="text", paper="nobody 2026", source="none", year=2026, tiny={})
class Hiding(TextEncoder):
    """Nothing."""

    def __init__(self, width: int):
        super().__init__()
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                Path(__file__).with_suffix(".pid").write_text(str(os.getpid()))
                time.sleep(600)
            os._exit(0)
        os.wait()
        ctypes.PyDLL(None).sleep(600)
'''


def until(condition, run: subprocess.Popen, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert run.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)


def gone(processes: list[psutil.Process], seconds: float = 5) -> bool:
    _, alive = psutil.wait_procs(processes, timeout=seconds)
    return not [one for one in alive if one.status() != psutil.STATUS_ZOMBIE]


def below(run: subprocess.Popen) -> list[psutil.Process]:
    return psutil.Process(run.pid).children(recursive=True)


@pytest.fixture
def hiding(tmp_path: Path) -> Path:
    plugin = tmp_path / "hiding.py"
    plugin.write_text(HIDING)
    return plugin


def test_a_killed_run_leaves_no_cell_that_is_stopped(tmp_path: Path, completed):
    run = start(tmp_path, *GRID, stdout=subprocess.DEVNULL)
    until(lambda: cells_of(run), run)
    stopped = cells_of(run)
    for cell in stopped:
        cell.suspend()
    left = below(run)
    run.kill()
    run.wait()
    assert gone(left)
    completed(tmp_path, "kill -9 of the run while its cells are stopped", 1)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_cell_in_c_code_and_what_it_hid_end_with_the_run(
    tmp_path: Path, hiding: Path, table: list[Row], number: signal.Signals
):
    arguments = ["run", "-a", "hiding", "-t", "sst2", "--plugin", str(hiding), "--mlflow", "none"]
    run = start(tmp_path / "results", *arguments)
    until(hiding.with_suffix(".pid").exists, run)
    time.sleep(0.2)
    left = [*below(run), psutil.Process(int(hiding.with_suffix(".pid").read_text()))]
    run.send_signal(number)
    run.communicate(timeout=60)
    assert gone(left)
    table.append(Row(f"{number.name} of a run whose cell is in C code and hid a process", 1, 1))


def test_what_a_cell_hid_ends_with_its_limit(tmp_path: Path, hiding: Path):
    arguments = ["run", "-a", "hiding", "-t", "sst2", "--plugin", str(hiding), "--mlflow", "none", "--timeout", "2"]
    code, told = finish(tmp_path / "results", *arguments)
    assert (code, "timeout" in told) == (1, True)
    assert not psutil.pid_exists(int(hiding.with_suffix(".pid").read_text()))


def test_the_start_of_the_fork_server_ends_no_cell(tmp_path: Path):
    """Torch takes longer to import than this cell to run."""
    code, told = finish(tmp_path, "run", "-a", "naive_bayes", "-t", "sst2", "--mlflow", "none", "--timeout", "3")
    assert code == 0, told


@pytest.fixture
def held_lock(tmp_path: Path) -> Iterator[Path]:
    """A results folder whose MLflow database another program has locked, and keeps so."""
    results = tmp_path / "results"
    results.mkdir()
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(results / "mlflow.db.lock")], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    yield results
    holder.kill()
    holder.communicate()


MIRRORED = [part for part in GRID if part not in ("--mlflow", "none")]


def test_a_run_that_waits_for_mlflow_can_be_ended(held_lock: Path):
    """TERM ends the cells as always; a second one ends the wait for MLflow, which has its own limit
    too."""
    run = start(held_lock, *MIRRORED, stdout=subprocess.DEVNULL)
    until(lambda: list((held_lock / "records").rglob("*.json")), run)
    until(lambda: cells_of(run), run)
    left = cells_of(run)
    run.terminate()
    assert gone(left, seconds=15)
    deadline = time.monotonic() + 15
    while run.poll() is None and time.monotonic() < deadline:
        time.sleep(1)  # its last record may not be written yet
        run.terminate()
    assert run.poll() is not None
    assert "interrupted" in {record.status for record in Store(held_lock).all()}


def test_limits_hold_while_mlflow_is_waited_for(held_lock: Path, hiding: Path):
    """The first cell's record waits for the lock, the second cell hangs."""
    arguments = ["run", "-a", "naive_bayes,hiding", "-t", "sst2", "--plugin", str(hiding), "--workers", "2"]
    code, told = finish(held_lock, *arguments, "--timeout", "4")
    assert (code, "timeout" in told) == (1, True)
    [hung] = [record for record in Store(held_lock).all() if record.architecture == "hiding"]
    assert 4 <= hung.seconds["total"] < 12


def test_a_results_folder_that_is_moved_is_told_of(tmp_path: Path, completed):
    """Put back, it is what it was, and the same command goes on."""
    results, moved = tmp_path / "results", tmp_path / "moved"
    run = start(results, *GRID)
    until(lambda: list((results / "records").rglob("*.json")), run)
    results.rename(moved)
    told, _ = run.communicate(timeout=300)
    assert run.returncode == 1, told
    assert "Traceback" not in told and "no cell can be reserved" in told
    assert results_of(moved)
    if results.exists():
        results.rename(tmp_path / "written-since")
    moved.rename(results)
    completed(results, "results folder moved away and back", 1)


def test_a_disk_without_any_room_is_told_of(small_disk: Path, completed):
    """Not a byte: no lease, no log. Once there is room, the same command completes the grid."""
    with suppress(OSError), (small_disk / "filler").open("wb") as filler:
        while True:
            filler.write(b"x" * 4096)
            filler.flush()
    code, told = finish(small_disk, *GRID)
    assert code in (1, 2)
    assert "No space left" in told and "Traceback" not in told
    assert [path.name for path in small_disk.rglob("*") if path.is_file()] == ["filler"], "nothing half-written"
    (small_disk / "filler").unlink()
    resize(small_disk, "size=200m")
    completed(small_disk, "disk without any room", 1)
