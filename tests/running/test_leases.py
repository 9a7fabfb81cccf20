"""Claims: of several runs on one results folder exactly one runs a cell, and a dead run's cells are
free again."""

from __future__ import annotations

import json
import multiprocessing
import os
import socket
import time

import psutil
import pytest

from harness.running import leases as module
from harness.running.leases import Claims


def write(claims: Claims, cell, **fields) -> None:
    me = {"host": socket.gethostname(), "pid": os.getpid(), "began": psutil.Process().create_time()}
    (claims.folder / f"{cell.key}.json").write_text(json.dumps(me | fields))


def dead_pid() -> int:
    process = multiprocessing.get_context("fork").Process(target=lambda: None)
    process.start()
    process.join()
    return process.pid


@pytest.fixture
def claims(tmp_path) -> Claims:
    return Claims(tmp_path / "claims")


def test_a_claimed_cell_is_refused_until_it_is_released(claims, make_cell):
    other = Claims(claims.folder)
    cell = make_cell()
    assert claims.take(cell)
    assert not other.take(cell)
    assert str(os.getpid()) in other.owner(cell)
    other.release(cell)
    assert not other.take(cell), "only who holds a claim gives it back"
    claims.release(cell)
    assert other.take(cell)


def test_the_claim_of_a_dead_process_is_taken_over(claims, make_cell):
    """Otherwise a cell whose run was killed would never be run again."""
    write(claims, make_cell(), pid=dead_pid())
    assert claims.take(make_cell())


def test_a_process_id_that_came_again_is_not_its_predecessor(claims, make_cell):
    write(claims, make_cell(), began=psutil.Process().create_time() - 5000)
    assert claims.take(make_cell())


def test_a_claim_from_another_machine_holds_while_it_is_touched(claims, make_cell):
    """Its process cannot be looked up from here; by the file system's clock, this machine's own
    does not matter."""
    cell = make_cell()
    write(claims, cell, host="elsewhere", pid=1)
    assert not claims.take(cell)
    path = claims.folder / f"{cell.key}.json"
    old = time.time() - module.SILENCE - 5
    os.utime(path, (old, old))
    assert claims.take(cell)


def test_a_beat_touches_what_is_held(claims, make_cell):
    cell = make_cell()
    claims.take(cell)
    path = claims.folder / f"{cell.key}.json"
    os.utime(path, (0, 0))
    claims.beat()
    assert path.stat().st_mtime > time.time() - 60


def test_a_damaged_claim_stops_nobody(claims, make_cell):
    (claims.folder / f"{make_cell().key}.json").write_text("{")
    assert claims.take(make_cell())


def _race(folder, cell, start, won):
    claims = Claims(folder)
    start.wait()
    if claims.take(cell):
        won.put(os.getpid())
        time.sleep(0.5)  # alive while the others try


@pytest.mark.parametrize("left_behind", [False, True])
def test_of_many_that_want_a_cell_at_once_one_gets_it(claims, make_cell, left_behind):
    """Also when all of them find the same dead claim: removing it must not remove the claim of who
    was quicker."""
    context = multiprocessing.get_context("fork")
    for round in range(5):
        cell = make_cell(seed=round)
        if left_behind:
            write(claims, cell, pid=dead_pid())
        start, won = context.Event(), context.Queue()
        racers = [context.Process(target=_race, args=(claims.folder, cell, start, won)) for _ in range(8)]
        for racer in racers:
            racer.start()
        start.set()
        for racer in racers:
            racer.join()
        assert len([won.get(timeout=5)]) == 1
        time.sleep(0.05)
        assert won.empty(), "a cell was run twice"
