"""Processes that a cell leaves behind, also those in a session of their own.

On Linux a process may adopt the orphans below it. A living cell does, so that whatever it started
counts as its own. The fork server adopts those of the cells that ended, and the run kills them.
Where the run itself is killed, the fork server kills whatever is below it before it ends. Elsewhere
orphans go to the system, and only the cell's process group is found.

What hides lives on only if the fork server is killed: then the system ends the cells, and nobody is
left who knows what they started.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from multiprocessing import forkserver
from typing import Any

import psutil

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
PATIENCE_S = 3.0  # seconds in which killed processes are to be gone
POLL_S = 0.01
_SERVER: Any = forkserver._forkserver  # Python 3.8 to 3.14 have no public name for its descriptors


def adopt_orphans() -> None:
    """Become the parent of every process below this one whose own parent ends (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


def end_with_parent() -> None:
    """Have the system kill this process when its parent ends (Linux): also one that is stopped, or
    is in C code."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def let_the_server_end() -> None:
    """Close what keeps the fork server alive, in a cell: the server lives as long as the run."""
    os.close(_SERVER._forkserver_alive_fd)


def kill_orphans() -> None:
    """Kill what ended cells left behind: children of the fork server that this program did not
    start itself."""
    server = _SERVER._forkserver_pid
    if server is None:
        return
    started = {process.pid for process in multiprocessing.active_children()}

    def left() -> list[psutil.Process]:
        return [child for child in psutil.Process(server).children() if child.pid not in started]

    with suppress(psutil.NoSuchProcess):  # the server died, and a later one has other children
        _kill(left)


def kill_descendants() -> None:
    """Kill every process below this one."""
    _kill(psutil.Process().children)


def _kill(left: Callable[[], Iterable[psutil.Process]]) -> None:
    """Kill the processes that ``left`` gives and all below them, until it gives none that lives.

    What is started meanwhile, and what gets another parent, is found by looking again.
    """
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        found = [process for process in left() if _lives(process)]
        if not found:
            return
        for process in found:
            with suppress(psutil.Error):
                for one in (process, *process.children(recursive=True)):
                    with suppress(psutil.Error):
                        one.kill()
        time.sleep(POLL_S)


def _lives(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False
