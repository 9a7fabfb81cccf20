"""Leases: of several runs on one results folder exactly one runs a cell, and a dead run's cells are
free again."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import socket
import sys
import time
from pathlib import Path

import psutil
import pytest

from harness import files
from harness.running import cell_locks as module
from harness.running.cell_locks import Leases


def write(leases: Leases, cell, **fields) -> None:
    me = {"host": socket.gethostname(), "machine": files.machine(), "pid": os.getpid()}
    me["began"] = psutil.Process().create_time()
    (leases.folder / f"{cell.key}.json").write_text(json.dumps(me | fields))


def dead_pid() -> int:
    process = multiprocessing.get_context("fork").Process(target=lambda: None)
    process.start()
    process.join()
    return process.pid


@pytest.fixture
def leases(tmp_path) -> Leases:
    return Leases(tmp_path / "leases")


def test_a_reserved_cell_is_refused_until_it_is_released(leases, make_cell):
    other = Leases(leases.folder)
    cell = make_cell()
    assert leases.take(cell)
    assert not other.take(cell)
    assert str(os.getpid()) in other.owner(cell)
    other.release(cell)
    assert not other.take(cell), "only who holds a lease gives it back"
    leases.release(cell)
    assert other.take(cell)


def test_the_lease_of_a_dead_process_is_taken_over(leases, make_cell):
    """Otherwise a cell whose run was killed would never be run again."""
    write(leases, make_cell(), pid=dead_pid())
    assert leases.take(make_cell())


def test_a_process_id_that_came_again_is_not_its_predecessor(leases, make_cell):
    write(leases, make_cell(), began=psutil.Process().create_time() - 5000)
    assert leases.take(make_cell())


def test_a_clock_that_is_set_frees_no_cell_of_a_living_process(leases, make_cell, monkeypatch):
    """psutil tells the start of a process by the clock of now: set that, and it seems to be another
    one."""
    assert leases.take(make_cell())
    created = psutil.Process.create_time
    monkeypatch.setattr(psutil.Process, "create_time", lambda process: created(process) - 3600)
    assert not Leases(leases.folder).take(make_cell())


@pytest.mark.skipif(sys.platform != "linux", reason="boots and namespaces have names on Linux")
@pytest.mark.parametrize("mark", ["BOOT", "IDS"])
def test_a_lease_of_another_machine_with_this_name_holds_while_it_is_touched(
    leases, make_cell, monkeypatch, tmp_path, mark
):
    """Copies of one virtual machine on one results folder, or containers with one name, would run
    every cell twice. A machine that was started anew gets its former cells after the same wait."""
    cell = make_cell()
    assert leases.take(cell)
    if mark == "BOOT":
        (tmp_path / "other").write_text("another boot\n")
    else:
        (tmp_path / "other").symlink_to("pid:[1]")
    monkeypatch.setattr(files, mark, tmp_path / "other")
    assert not Leases(leases.folder).take(cell)
    old = time.time() - module.LEASE_EXPIRY_S - 5
    os.utime(leases.folder / f"{cell.key}.json", (old, old))
    assert Leases(leases.folder).take(cell)


def test_a_lease_of_an_older_archbench_holds(leases, make_cell):
    """It noted no machine, and its run goes on while a newer one starts."""
    write(leases, make_cell(), machine=None)
    assert not leases.take(make_cell())


def test_a_disk_without_room_leaves_no_half_a_lease(leases, make_cell, monkeypatch):
    def full(path, text):
        path.touch()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(type(leases.folder), "write_text", full)
    with pytest.raises(OSError, match="No space left"):
        leases.take(make_cell())
    assert not list(leases.folder.iterdir())


def test_a_lease_from_another_machine_holds_while_it_is_touched(leases, make_cell):
    """Its process cannot be looked up from here; by the file system's clock, this machine's own
    does not matter."""
    cell = make_cell()
    write(leases, cell, machine="elsewhere", pid=1)
    assert not leases.take(cell)
    path = leases.folder / f"{cell.key}.json"
    old = time.time() - module.LEASE_EXPIRY_S - 5
    os.utime(path, (old, old))
    assert leases.take(cell)


def test_a_renewal_touches_what_is_held(leases, make_cell):
    cell = make_cell()
    leases.take(cell)
    path = leases.folder / f"{cell.key}.json"
    os.utime(path, (0, 0))
    leases.renew()
    assert path.stat().st_mtime > time.time() - 60


def test_a_damaged_lease_stops_nobody(leases, make_cell):
    (leases.folder / f"{make_cell().key}.json").write_text("{")
    assert leases.take(make_cell())


def test_who_looks_again_leaves_the_lease_of_who_was_quicker(leases, make_cell, monkeypatch):
    """Two find the same dead lease, and one has taken the cell before the other removes it."""
    cell, quicker = make_cell(), Leases(leases.folder)
    write(leases, cell, pid=dead_pid())
    is_alive = module._is_alive

    def taken_meanwhile(owner):
        monkeypatch.setattr(module, "_is_alive", is_alive)
        assert quicker.take(cell)
        return is_alive(owner)

    monkeypatch.setattr(module, "_is_alive", taken_meanwhile)
    assert not leases.take(cell)
    assert not Leases(leases.folder).take(cell), "the lease of the quicker one is gone"


def test_a_cell_that_is_given_back_while_its_lease_is_looked_at_can_be_taken(leases, make_cell, monkeypatch):
    cell, other, create = make_cell(), Leases(leases.folder), Leases._create
    assert other.take(cell)

    def given_back_after(one, path):
        monkeypatch.setattr(Leases, "_create", create)
        created = create(one, path)
        other.release(cell)
        return created

    monkeypatch.setattr(Leases, "_create", given_back_after)
    assert leases.take(cell)
    assert not Leases(leases.folder).take(cell)


def _race(folder, cell, start, tried, won):
    leases = Leases(folder)
    start.wait()
    if leases.take(cell):
        won.put(os.getpid())
    tried.wait(60)  # alive while the others try


def _without_links(*_):
    raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))


def _opened_slowly(path, mode="r", *given, opened=Path.open, **options):
    """A file on a slow drive: what is written comes long after the file."""
    file = opened(path, mode, *given, **options)
    time.sleep(0.1 if mode == "x" else 0)
    return file


@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("left_behind", [False, True])
def test_of_many_that_want_a_cell_at_once_one_gets_it(leases, make_cell, monkeypatch, left_behind, links):
    """Also when all of them find the same dead lease: removing it must not remove the lease of who
    was quicker. On a drive without hard links no cell could ever run."""
    if not links:
        monkeypatch.setattr(os, "link", _without_links)
        monkeypatch.setattr(Path, "open", _opened_slowly)
    context = multiprocessing.get_context("fork")
    for seed in range(5 if links else 2):
        cell = make_cell(seed=seed)
        if left_behind:
            write(leases, cell, pid=dead_pid())
        start, tried, won = context.Event(), context.Barrier(8), context.Queue()
        racers = [context.Process(target=_race, args=(leases.folder, cell, start, tried, won)) for _ in range(8)]
        for racer in racers:
            racer.start()
        start.set()
        for racer in racers:
            racer.join()
        won.get(timeout=5)
        time.sleep(0.05)
        assert won.empty(), "a cell was run twice"
