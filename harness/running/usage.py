"""Resident memory and processor time of processes."""

from __future__ import annotations

import os
import resource
import time
from contextlib import suppress
from pathlib import Path

import psutil

PROCESSES = Path("/proc")


def resident_mib(pid: int) -> float:
    """Resident memory of a process and all its descendants, in MiB; 0 for a process that is gone.

    Pages that several of them share count once for each, as :func:`used_mib` has them not.
    """
    return sum(_resident(process) for process in _tree(pid)) / 2**20


def used_mib(pid: int) -> float:
    """Resident memory of a process and all its descendants, in MiB, in which shared pages count
    once; 0 for a process that is gone.

    It is what the largest of them holds, or the sum of their proportional shares. The kernel takes
    15 ms for each GiB of each process, so look at :func:`resident_mib` first, which is never less.
    The smaller of two readings: the share of one process grows when another ends, and in the midst
    of a reading their pages would count again.
    """
    return min(_used(pid), _used(pid)) / 2**20


def _used(pid: int) -> int:
    tree = _tree(pid)
    return max(sum(map(_share, tree)), *map(_resident, tree), 0)


def processor_s(pid: int) -> float:
    """Seconds of processor time that a process, its descendants and those of them that have ended
    have taken together; 0 for a process that is gone.

    Another program on the same machine makes a process slower, and adds nothing to it.
    """
    return sum(map(_processor, _tree(pid)))


def clocks() -> tuple[float, float]:
    """Seconds of the clock, and processor seconds of this process and its descendants."""
    return time.perf_counter(), processor_s(os.getpid())


def since(began: tuple[float, float]) -> tuple[float, float]:
    """Seconds of both :func:`clocks` since they showed ``began``."""
    now, computed = clocks()
    return now - began[0], max(0.0, computed - began[1])


def _tree(pid: int) -> list[psutil.Process]:
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.Error:
        return []


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


def _share(process: psutil.Process) -> int:
    """Resident memory of a process, in which a page that n processes share counts as 1/n; where the
    system does not tell, all of it."""
    try:
        return int(process.memory_full_info().pss)
    except (psutil.Error, AttributeError):
        return _resident(process)


def _processor(process: psutil.Process) -> float:
    """Seconds that a process has taken, with those of children that it has waited for."""
    try:
        times = process.cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system + times.children_user + times.children_system)


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
