"""Resident memory of processes."""

from __future__ import annotations

import os
import resource
from contextlib import suppress
from pathlib import Path

import psutil

PROCESSES = Path("/proc")


def resident_mib(pid: int) -> float:
    """Resident memory of a process and all its descendants, in MiB; 0 for a process that is gone.

    Pages that several of them share count once for each.
    """
    total = 0
    with suppress(psutil.Error):
        root = psutil.Process(pid)
        for process in (root, *root.children(recursive=True)):
            with suppress(psutil.Error):
                total += process.memory_info().rss
    return total / 2**20


def own_peak_mib() -> float:
    """Peak resident memory of this process as the kernel recorded it, in MiB.

    The kernel resets it at fork. ``getrusage`` is not reset at exec and may report the parent's
    peak; it is only the fallback.
    """
    peak = peak_mib(os.getpid())
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 if peak is None else peak


def peak_mib(pid: int) -> float | None:
    """Peak resident memory of a process so far as the kernel recorded it, in MiB.

    None where there is no such process, or no such record (systems other than Linux).
    """
    with suppress(OSError):
        for line in (PROCESSES / str(pid) / "status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return None
