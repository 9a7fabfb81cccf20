"""What a machine does while a cell runs: other cells on it, runs that measure alone, and the memory
of the cell's own processes.

Cells and runs are known to each other by sockets that only have a name, in Linux's abstract
namespace: the kernel forgets a name with its process, so a kill leaves nothing behind. Seen are
those of all users and all results folders; not those in a container with a network of its own, not
other programs (of which a record's load average tells), and on other systems than Linux nothing.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from harness.errors import UsageError
from harness.running.memory import own_peak_mib, resident_mib

Kind = Literal["cell", "run", "alone"]
"""A cell, a run whose cells may have company, and a run that measures speeds alone."""

NAME = "archbench"
SOCKETS = Path("/proc/net/unix")
POLL = 1.0
"""Seconds between two looks of :func:`watched`, each of which takes 1 to 2 ms of the cell's time
where 100 processes run."""


@contextmanager
def known_as(kind: Kind) -> Iterator[str]:
    """Be known on this machine until the block or the process ends; gives the name."""
    name = f"{NAME}-{kind}-{uuid.uuid4().hex}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as held:
        if sys.platform == "linux":
            held.bind(f"\0{name}")
        yield name


def others(kind: Kind, own: str) -> int | None:
    """How many besides ``own`` are known as this; None where the system does not tell."""
    try:
        names = {line.split()[-1] for line in SOCKETS.read_text(errors="replace").splitlines()}
    except OSError:
        return None
    return sum(name.startswith(f"@{NAME}-{kind}-") for name in names - {f"@{own}"})


@contextmanager
def run_of_cells(alone: bool) -> Iterator[None]:
    """Keep runs that measure ``alone`` and all others apart: :class:`UsageError` in the one that
    comes second (in both, if at once)."""
    with known_as(
        "alone" if alone else "run"
    ) as own:  # first known, then looking: two that come at once cannot miss each other
        exclusive, shared = others("alone", own), others("run", own)
        if alone and (exclusive is None or shared is None):
            raise UsageError(
                f"--speed-alone: whether other runs are on this machine cannot be seen, there is no {SOCKETS}"
            )
        if alone and exclusive + shared:
            there = f"{exclusive + shared} other archbench run(s) on this machine"
            raise UsageError(f"--speed-alone: there are {there}; start this one when they have ended")
        if exclusive:
            raise UsageError(
                "a run on this machine measures speeds alone (--speed-alone); start this one when it has ended"
            )
        yield


class Watch:
    """What was seen beside this cell and of its processes, by a look every :data:`POLL` seconds."""

    def __init__(self, own: str):
        self.own, self._mib = own, 0.0
        self.beside: int | None = None
        """The most other cells that ran on this machine at a time; None where the system does not
        tell."""

    def look(self) -> None:
        """Look once more."""
        found = others("cell", self.own)
        self.beside = found if self.beside is None else max(self.beside, found or 0)
        self._mib = max(self._mib, resident_mib(os.getpid()))

    def peak_rss_mib(self) -> float:
        """Peak resident memory of this process and all that it started, together; what others hold
        between two looks is missed."""
        self.look()
        return max(self._mib, own_peak_mib())


@contextmanager
def watched() -> Iterator[Watch]:
    """Be known as a cell, and watch this process and its surroundings, until the block ends."""
    ended = threading.Event()
    with known_as("cell") as own:
        watch = Watch(own)
        watch.look()

        def keep_looking() -> None:
            while not ended.wait(POLL):
                watch.look()

        thread = threading.Thread(target=keep_looking, daemon=True)
        thread.start()
        try:
            yield watch
        finally:
            ended.set()
            thread.join()
