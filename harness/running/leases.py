"""Who runs which cell, where several `archbench run` share a results folder: one file per running
cell, made atomically.

A claim is stale when its process is gone: at once on its own machine (the process id is looked up,
with the time the process began, since ids come again), and on another machine when nobody has
touched the file for :data:`SILENCE` seconds, by that file system's clock.
"""

from __future__ import annotations

import json
import os
import socket
import time
import uuid
from contextlib import suppress
from pathlib import Path

import psutil

from harness.records import Cell

HEARTBEAT = 30.0
"""Seconds between two touches of the claims that are held."""
SILENCE = 300.0
"""Seconds after which a claim of another machine is taken for dead."""


class Claims:
    """The claims in one folder, as one process sees them."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._held: set[Path] = set()
        self._due = 0.0
        folder.mkdir(parents=True, exist_ok=True)

    def take(self, cell: Cell) -> bool:
        """Claim a cell; False when another living process has it."""
        path = self.folder / f"{cell.key}.json"
        while not self._create(path):
            if not self._stale(path):
                return False
            self._clear(path)
        self._held.add(path)
        return True

    def release(self, cell: Cell) -> None:
        """Give a cell back."""
        path = self.folder / f"{cell.key}.json"
        if path in self._held:
            self._held.discard(path)
            path.unlink(missing_ok=True)

    def beat(self) -> None:
        """Show other machines that this process lives; to be called now and then."""
        if time.monotonic() < self._due:
            return
        self._due = time.monotonic() + HEARTBEAT
        for path in self._held:
            with suppress(
                OSError
            ):  # the folder is gone for a moment, or somebody took the claim for dead: the cell goes on
                os.utime(path)

    def owner(self, cell: Cell) -> str:
        """Who has a cell, in words."""
        content = _read(self.folder / f"{cell.key}.json")
        return f"process {content.get('pid')} on {content.get('host')}" if content else "another run"

    def _create(self, path: Path) -> bool:
        """Make the file with its content in one step: a reader never sees half a claim."""
        me = {"host": socket.gethostname(), "pid": os.getpid(), "began": psutil.Process().create_time()}
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        temporary.write_text(json.dumps(me))
        try:
            os.link(temporary, path)
        except FileExistsError:
            return False
        finally:
            temporary.unlink()
        return True

    def _stale(self, path: Path) -> bool:
        content = _read(path)
        if content is None:  # released in this moment, or damaged
            return True
        if content.get("host") == socket.gethostname():
            return not _lives(content)
        return self._now() - _touched(path) > SILENCE

    def _now(self) -> float:
        """The file system's clock, which machines share."""
        probe = self.folder / f".{uuid.uuid4().hex}"
        probe.touch()
        try:
            return probe.stat().st_mtime
        finally:
            probe.unlink()

    def _clear(self, path: Path) -> None:
        """Take a dead claim away, once: of two processes that find it dead, the second must not
        remove the first one's new claim."""
        aside = path.with_name(f".{path.name}.{uuid.uuid4().hex}.dead")
        with suppress(
            FileNotFoundError, IsADirectoryError
        ):  # gone already; a folder in its place is out of the way now
            os.rename(path, aside)
            if not self._stale(aside):  # it was alive: another process was quicker than we
                with suppress(FileExistsError):
                    os.link(aside, path)
            aside.unlink()


def _read(path: Path) -> dict[str, object] | None:
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _touched(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _lives(content: dict[str, object]) -> bool:
    try:
        process = psutil.Process(int(str(content["pid"])))
        return (
            abs(process.create_time() - float(str(content["began"]))) < 1.0 and process.status() != psutil.STATUS_ZOMBIE
        )
    except (psutil.NoSuchProcess, KeyError, ValueError, OverflowError):
        return False
