"""Leases that keep several runs on one results folder from running the same cell.

A lease is one file per running cell, created atomically. It has expired when its process is gone.
On the process's own machine the process id is looked up, together with the start of the process,
because ids are reused; the start is counted from the boot, because clocks are set. From another
machine it has expired when nobody has touched the file for :data:`LEASE_EXPIRY_S` seconds, by the
clock of the file system. A machine that was started anew is another one to its former leases:
nothing tells these for certain from those of a living machine of the same name.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import time
import uuid
from contextlib import suppress
from pathlib import Path

import psutil
from filelock import FileLock

from harness.files import machine
from harness.records import Cell

RENEWAL_S = 30.0
"""Seconds between two renewals of the held leases."""
LEASE_EXPIRY_S = 300.0
"""Seconds without a renewal after which a lease of another machine has expired."""

WITHOUT_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
"""Errors by which file systems say that they have no hard links: those of many external drives and
network shares."""

TICKS = 19  # place of "starttime" in /proc/PID/stat, from the field after the name


class Leases:
    """The leases in one folder, from the view of one process."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._held: set[Path] = set()
        self._due = 0.0
        folder.mkdir(parents=True, exist_ok=True)

    def take(self, cell: Cell) -> bool:
        """Reserve a cell; False when another living process has it.

        Raises ``OSError`` where the folder is gone or the disk is full.
        """
        path = self._path(cell)
        while not self._create(path):
            with suppress(FileNotFoundError):  # given back in this moment: it may be had now
                if not self._expired(path) or not self._cleared(path):
                    return False
        self._held.add(path)
        return True

    def release(self, cell: Cell) -> None:
        """Give a cell back; a lease of another process stays."""
        path = self._path(cell)
        if path in self._held:
            self._held.discard(path)
            with suppress(OSError):  # it expires with this process
                path.unlink(missing_ok=True)

    def renew(self) -> None:
        """Touch the held leases if they are due. Call it regularly."""
        if time.monotonic() < self._due:
            return
        self._due = time.monotonic() + RENEWAL_S
        for path in self._held:
            # The folder may be gone for a moment, or another machine may have cleared the lease:
            # the cell goes on.
            with suppress(OSError):
                os.utime(path)

    def owner(self, cell: Cell) -> str:
        """The process that has a cell, as text for a message."""
        try:
            content = _read(self._path(cell))
        except FileNotFoundError:
            content = None
        return f"process {content.get('pid')} on {content.get('host')}" if content else "another run"

    def _path(self, cell: Cell) -> Path:
        return self.folder / f"{cell.key}.json"

    def _lock(self) -> FileLock:
        return FileLock(self.folder.with_name(f"{self.folder.name}.lock"))

    def _create(self, path: Path) -> bool:
        """Create the file with its content in one step: a reader never sees half a lease.

        Where the file system has no links these are two steps, under the lock: who finds half a
        lease waits for the lock and looks again.
        """
        owner = {"host": socket.gethostname(), "machine": machine(), "pid": os.getpid()} | _start(psutil.Process())
        content = json.dumps(owner)
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        try:
            temporary.write_text(content)
            try:
                os.link(temporary, path)
            except OSError as error:
                if error.errno not in WITHOUT_LINKS:
                    raise
                with self._lock(), path.open("x") as lease:
                    lease.write(content)
        except FileExistsError:
            return False
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
        return True

    def _expired(self, path: Path) -> bool:
        """True if nobody has a lease any more; ``FileNotFoundError`` where there is none."""
        content = _read(path)
        if content is None:
            return True
        if content.get("machine") == machine():
            return not _is_alive(content)
        return self._now() - _modified(path) > LEASE_EXPIRY_S

    def _now(self) -> float:
        """Time by the clock of the file system, which machines share."""
        probe = self.folder / f".{uuid.uuid4().hex}"
        try:
            probe.touch()
            return probe.stat().st_mtime
        finally:
            probe.unlink(missing_ok=True)

    def _cleared(self, path: Path) -> bool:
        """Remove an expired lease; False when another process was quicker and has the cell now.

        One process at a time looks and removes. Were these two steps of several, the second might
        remove the new lease of the first.
        """
        with self._lock():
            if not self._expired(path):
                return False
            if path.is_dir():  # no lease, but in its way
                path.rename(path.with_name(f".{path.name}.{uuid.uuid4().hex}"))
            else:
                path.unlink()
        return True


def _read(path: Path) -> dict[str, object] | None:
    """A lease; None where it is damaged. Raises ``FileNotFoundError`` where there is none."""
    try:
        content = json.loads(path.read_text())
    except FileNotFoundError:
        raise
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _start(process: psutil.Process) -> dict[str, object]:
    """Marks that tell a process from others of the same number on its machine: when it began and,
    on Linux, after how many ticks."""
    began: dict[str, object] = {"began": process.create_time()}
    with suppress(OSError):
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        began["ticks"] = int(fields[TICKS])
    return began


def _is_alive(owner: dict[str, object]) -> bool:
    try:
        process = psutil.Process(int(str(owner["pid"])))
        start = _start(process)
        if "ticks" in owner:
            same = owner["ticks"] == start.get("ticks")
        else:  # of another system
            same = abs(float(str(start["began"])) - float(str(owner["began"]))) < 1.0
        return same and bool(process.status() != psutil.STATUS_ZOMBIE)
    except (psutil.NoSuchProcess, KeyError, ValueError, OverflowError):
        return False
