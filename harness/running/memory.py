"""Resident memory of processes."""

from __future__ import annotations

import os
import resource
from contextlib import suppress
from pathlib import Path

import psutil

PROCESSES = Path("/proc")


def resident_mib(pid: int) -> float:
    """Resident memory of a process and all that it started, in MiB; pages that several of them
    share count in each."""
    total = 0
    try:
        root = psutil.Process(pid)
        for process in (root, *root.children(recursive=True)):
            try:
                total += process.memory_info().rss
            except psutil.Error:
                continue
    except psutil.Error:
        pass
    return total / 2**20


def own_peak_mib() -> float:
    """The kernel's mark of this process's highest resident memory, in MiB.

    It begins anew with a fork. That of ``getrusage`` does not begin anew with the start of another
    program, so that a process seems to have needed what its parent did; it stands in where there is
    no other.
    """
    told = peak_mib(os.getpid())
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 if told is None else told


def peak_mib(pid: int) -> float | None:
    """The kernel's mark of a process's highest resident memory so far, in MiB; None where there is
    no such process or no such mark."""
    with suppress(OSError):
        for line in (PROCESSES / str(pid) / "status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return None
