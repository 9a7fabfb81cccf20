"""`kill -9` at random moments: after the same command is run again, every cell has one record, with
the scores of an undisturbed run."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from tests.faults.grids import CELLS, GRID, Row, cells_of, finish, ray_workers_of, results_of, start

KILLS = int(os.environ.get("ARCHBENCH_KILLS", "50"))
"""Of each victim."""


VICTIMS = {
    "the run itself": ((), lambda run: [psutil.Process(run.pid)]),
    "a cell": ((), cells_of),
    "a Ray worker": (("--engine", "ray"), ray_workers_of),
}


def kill_at_random(run: subprocess.Popen, victim: str, generator: random.Random) -> bool:
    """Wait for a random moment of the run, then kill; False when there was nobody to kill, as the
    run was over by then."""
    time.sleep(generator.uniform(0.2, 2.5))
    while run.poll() is None:
        try:
            generator.choice(VICTIMS[victim][1](run)).kill()
            return True
        except (IndexError, psutil.NoSuchProcess):  # no cell is running at this moment
            time.sleep(0.1)
    return False


@pytest.mark.parametrize("victim", VICTIMS)
def test_nothing_is_lost_or_doubled_or_different(tmp_path: Path, undisturbed, table, victim):
    if victim == "a Ray worker":
        pytest.importorskip("ray", reason="pip install 'archbench[ray]' to kill its workers")
    generator = random.Random(victim)
    killed = grids = lost = doubled = 0
    while killed < KILLS:
        assert killed or grids < 3, "three grids, and nobody was found to kill"
        folder = tmp_path / f"grid-{grids}"
        grids += 1
        code = None
        while code != 0:
            run = start(folder, *GRID, *VICTIMS[victim][0], stdout=subprocess.DEVNULL)
            while killed < KILLS and run.poll() is None:
                killed += kill_at_random(run, victim, generator)
            code = run.wait(timeout=600)
        found = results_of(folder)
        lost += len(undisturbed.keys() - found.keys())
        doubled += len(found.keys() - undisturbed.keys())
        assert found == undisturbed
    table.append(Row(f"kill -9 of {victim}", killed, grids * CELLS, lost, doubled))


@pytest.mark.usefixtures("of_a_terminal")
def test_a_cell_cut_in_the_middle_goes_on_from_its_checkpoint(tmp_path: Path, undisturbed, table, completed):
    """Stopped twice by Ctrl-C after its first epoch: it is `interrupted`, resumes, and ends with
    the scores of an undisturbed run."""
    run = start(tmp_path, *GRID, stdout=subprocess.DEVNULL)
    logs = tmp_path / "work" / "logs"
    deadline = time.monotonic() + 120
    while not any("epoch 1:" in log.read_text(errors="replace") for log in logs.glob("*birnn*")):
        assert run.poll() is None and time.monotonic() < deadline, "no cell of the birnn was seen in its middle"
        time.sleep(0.02)
    for _ in range(2):
        run.send_signal(signal.SIGINT)
        time.sleep(0.2)
    assert run.wait(timeout=60) == 1
    assert "interrupted" in {status for status, *_ in results_of(tmp_path).values()}
    assert list((tmp_path / "work" / "checkpoints").rglob("last.ckpt")), "there is something to resume from"
    completed(tmp_path, "Ctrl-C twice in the middle of cells", 1)


def test_the_fork_server_can_be_killed(tmp_path: Path, completed):
    """Its cells die with it; they are started again in the same run."""
    run = start(tmp_path, *GRID)
    while not cells_of(run):
        assert run.poll() is None
        time.sleep(0.05)
    server = next(p for p in psutil.Process(run.pid).children() if "forkserver" in " ".join(p.cmdline()))
    server.kill()
    told, _ = run.communicate(timeout=600)
    assert run.returncode == 0, told
    completed(tmp_path, "kill -9 of the fork server", 1)


def test_two_runs_at_once_share_the_grid(tmp_path: Path, completed):
    """Also when one of them is killed: the other takes its cells over."""
    first, second = start(tmp_path, *GRID), start(tmp_path, *GRID)
    while not cells_of(first):
        time.sleep(0.05)
    first.kill()
    first.communicate(timeout=60)
    told, _ = second.communicate(timeout=600)
    assert second.returncode == 0, told
    logs = list((tmp_path / "work" / "logs").iterdir())
    assert len(logs) == CELLS
    completed(tmp_path, "two runs on one results folder, one of them killed", 1)


def test_a_finished_grid_has_nothing_to_do(tmp_path: Path):
    finish(tmp_path, *GRID)
    code, told = finish(tmp_path, *GRID)
    assert (code, "0 cells run" in told) == (0, True)
