"""The neighbours and the memory that a cell sees, and runs that keep others away while they
measure."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.running import neighbours
from harness.running.neighbours import announced, count_others, run_of_cells, watched
from harness.running.usage import resident_mib

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="names of sockets are Linux's")


@pytest.fixture(autouse=True)
def name(monkeypatch: pytest.MonkeyPatch) -> str:
    """A name of the test's own: the suite runs beside itself, and beside real runs."""
    monkeypatch.setattr(neighbours, "NAME", f"test-{uuid.uuid4().hex[:8]}")
    return neighbours.NAME


@contextmanager
def elsewhere(code: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A process that has run ``code`` by now and waits; killed at the end, as a user or the kernel
    would."""
    with subprocess.Popen(
        [sys.executable, "-c", f"{code}\nprint('here', flush=True)\nimport time; time.sleep(60)", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "here\n"
            yield process
        finally:
            process.kill()


ANNOUNCED = (
    "import sys\nfrom harness.running import neighbours\nneighbours.NAME = sys.argv[1]\n"
    "held = neighbours.announced(sys.argv[2]); held.__enter__()"
)


def test_a_process_is_known_until_it_ends_however(name):
    """A file would stay behind after a kill, and every later speed would be marked for nothing."""
    with announced("cell") as own:
        assert count_others("cell", own) == 0
        with elsewhere(ANNOUNCED, name, "cell"), elsewhere(ANNOUNCED, name, "cell"), elsewhere(ANNOUNCED, name, "run"):
            assert (count_others("cell", own), count_others("run", own)) == (2, 1)
        assert (count_others("cell", own), count_others("run", own)) == (0, 0)


def test_a_cell_tells_the_most_others_at_a_time(name, monkeypatch):
    """Two that came one after the other were one at a time; they are gone when the cell ends, and
    count all the same."""
    monkeypatch.setattr(neighbours, "POLL", 0.02)
    with watched() as watch:
        assert watch.beside == 0
        for _ in range(2):
            with elsewhere(ANNOUNCED, name, "cell"):
                time.sleep(0.2)
        watch.look()
        assert count_others("cell", watch.own) == 0
        assert watch.beside == 1


def test_a_name_of_another_program_may_have_empty_lines(name):
    """The kernel shows it as it is: one such socket stopped every run on the machine."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as odd, announced("cell") as own:
        odd.bind(f"\0{name}\n\nodd")
        assert count_others("cell", own) == 0


def test_where_the_system_does_not_tell_nothing_is_claimed(monkeypatch):
    monkeypatch.setattr(neighbours, "SOCKETS", Path("/nowhere"))
    with watched() as watch:
        assert watch.beside is None, "not 0, which says that the cell was alone"
    with run_of_cells(alone=False):
        pass
    with (
        pytest.raises(
            UsageError,
            match="--speed-alone: other runs on this machine cannot be detected, because /nowhere",
        ),
        run_of_cells(alone=True),
    ):
        pass


def test_a_run_that_measures_alone_and_another_exclude_each_other(name):
    """Whichever comes second is told so; runs that measure nothing alone may be as many as they
    like."""
    refused = pytest.raises(UsageError, match="--speed-alone: other archbench runs on this machine: 2;")
    with run_of_cells(alone=False), run_of_cells(alone=False), refused, run_of_cells(alone=True):
        pass
    with elsewhere(ANNOUNCED, name, "alone"):
        for alone, message in (
            (True, "other archbench runs on this machine: 1;"),
            (False, "a run on this machine measures speeds alone"),
        ):
            with pytest.raises(UsageError, match=message), run_of_cells(alone=alone):
                pass
    with run_of_cells(alone=True):
        pass


def printed(code: str) -> list[float]:
    """Numbers that a fresh process prints: this one may have had a higher peak of its own."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    return [float(number) for number in done.stdout.split()]


def test_memory_is_that_of_all_processes_of_a_cell_at_their_peak():
    """A process for each device, or loaders of data, may hold most of what a cell needs; and they
    are gone when the record is written."""
    code = """
import subprocess, sys, time
from harness.running import neighbours
neighbours.POLL = 0.02
held = "held = b'x' * (150 << 20); print('here', flush=True); input()"
with neighbours.watched() as watch:
    alone = watch.peak_rss_mib()
    children = [subprocess.Popen([sys.executable, "-c", held], stdin=-1, stdout=-1, text=True) for _ in range(2)]
    for child in children:
        child.stdout.readline()
    time.sleep(0.2)
    for child in children:
        child.communicate("end")
    print(alone, watch.peak_rss_mib())
"""
    alone, together = printed(code)
    assert 300 < together - alone < 400


def test_the_peak_of_the_cell_itself_needs_no_look_and_is_not_that_of_its_parent():
    """A cell is forked from a server that has done other things: what that once held is no memory
    of the cell."""
    code = """
import os
from harness.running import neighbours
big = b"x" * (300 << 20)
del big
if os.fork() == 0:
    with neighbours.watched() as watch:
        before = watch.peak_rss_mib()
        big = b"x" * (120 << 20)
        del big
        print(before, watch.peak_rss_mib(), flush=True)
    os._exit(0)
os.wait()
"""
    before, after = printed(code)
    assert before < 250
    assert 110 < after - before < 200


def test_a_process_that_is_gone_has_no_memory():
    with elsewhere("") as process:
        assert resident_mib(process.pid) > 5
    assert resident_mib(process.pid) == 0
