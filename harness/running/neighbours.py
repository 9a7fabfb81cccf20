"""Other cells on this machine, runs that measure alone, and the memory of a cell's own processes.

Cells and runs announce themselves by sockets that only have a name, in Linux's abstract namespace:
the kernel drops a name with its process, so a kill leaves nothing behind. Cells of all users and
results folders are visible; cells in containers with their own network, and other programs, are
not (see the record's load average). Works on Linux only.
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
from harness.running.usage import own_peak_mib, resident_mib

Presence = Literal["cell", "run", "alone"]
"""A cell, a run whose cells may have company, and a run that measures speeds alone."""

NAME = "archbench"
SOCKETS = Path("/proc/net/unix")
POLL = 1.0
"""Seconds between two samples of :func:`watched`. A sample takes 1 to 2 ms of the cell's time where
100 processes run."""


@contextmanager
def announced(presence: Presence) -> Iterator[str]:
    """Be visible on this machine until the block or the process ends; gives the name."""
    name = f"{NAME}-{presence}-{uuid.uuid4().hex}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as announcement:
        if sys.platform == "linux":
            announcement.bind(f"\0{name}")
        yield name


def count_others(presence: Presence, own: str) -> int | None:
    """Number of processes with this presence besides ``own``; None where the system does not
    show them."""
    try:
        lines = SOCKETS.read_text(errors="replace").splitlines()
    except OSError:
        return None
    names = {word for line in lines for word in line.split()[-1:]}  # a name of others may hold an empty line
    return sum(name.startswith(f"@{NAME}-{presence}-") for name in names - {f"@{own}"})


@contextmanager
def run_of_cells(alone: bool) -> Iterator[None]:
    """Keep runs that measure ``alone`` and all other runs apart.

    Raises :class:`UsageError` in the one that comes second (in both, if they come at once).
    """
    # Announce first, then look: two that come at once cannot miss each other.
    with announced("alone" if alone else "run") as own:
        exclusive, shared = count_others("alone", own), count_others("run", own)
        if alone:
            if exclusive is None or shared is None:
                raise UsageError(
                    f"--speed-alone: other runs on this machine cannot be detected, because {SOCKETS} is missing"
                )
            if exclusive + shared:
                raise UsageError(
                    f"--speed-alone: other archbench runs on this machine: {exclusive + shared}; "
                    "start this one when they have ended"
                )
        if exclusive:
            raise UsageError(
                "a run on this machine measures speeds alone (--speed-alone); start this one when it has ended"
            )
        yield


class Watch:
    """Samples the number of other cells and this cell's memory every :data:`POLL` seconds."""

    def __init__(self, own: str):
        self.own, self._mib = own, 0.0
        self.beside: int | None = None
        """Largest number of other cells that ran on this machine at a time; None where the system
        does not show them."""

    def look(self) -> None:
        """Take one sample."""
        neighbours = count_others("cell", self.own)
        self.beside = neighbours if self.beside is None else max(self.beside, neighbours or 0)
        self._mib = max(self._mib, resident_mib(os.getpid()))

    def peak_rss_mib(self) -> float:
        """Peak resident memory of this process and its descendants together, in MiB.

        Memory that descendants hold only between two samples is missed.
        """
        self.look()
        return max(self._mib, own_peak_mib())


@contextmanager
def watched() -> Iterator[Watch]:
    """Announce a cell, and watch this process and its neighbours until the block ends."""
    ended = threading.Event()
    with announced("cell") as own:
        watch = Watch(own)
        watch.look()

        def sample() -> None:
            while not ended.wait(POLL):
                watch.look()

        thread = threading.Thread(target=sample, daemon=True)
        thread.start()
        try:
            yield watch
        finally:
            ended.set()
            thread.join()
