"""The loop that all engines share: it starts and watches cells, each of which ends in one
record."""

from __future__ import annotations

import os
import signal
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from harness.errors import RecordError
from harness.records import Cell, Record, Status, Store, environment, portable_text
from harness.records.code_digest import code_of_cell
from harness.running.grid import Settings
from harness.running.leases import Leases

LEASE_POLL_S = 1.0  # seconds between two attempts to take the cells that other runs have


def stamp(store: Store, cell: Cell) -> tuple[int, int] | None:
    """Identity of one version of a cell's record file; None where there is no file."""
    try:
        status = store.path(cell).stat()
    except FileNotFoundError:
        return None
    return status.st_mtime_ns, status.st_ino


def log_name(cell: Cell, settings: Settings) -> str:
    """Path of a cell's log as its record names it: relative to the results folder."""
    return os.path.relpath(settings.log(cell), settings.results)


def failure_record(cell: Cell, settings: Settings, status: Status, type: str, message: str, **fields: object) -> Record:
    """The record of a cell that did not end ok; ``fields`` are further fields of the record."""
    message = portable_text(message, settings.results, settings.data_dir)
    error = {"type": type, "message": message, "log": log_name(cell, settings)}
    machine = environment() | {"threads": settings.threads}
    code = code_of_cell(cell)
    return Record.skeleton(
        cell, status, command=settings.command, error=error, environment=machine, code=code, **fields
    )


def write_or_warn(record: Record, store: Store) -> Record:
    """Write the record and return it; warn if it cannot be written."""
    try:
        store.write(record)
    except RecordError as error:
        warnings.warn(f"record not written: {error}", stacklevel=2)
    return record


class _Stop:
    """Counts requests to stop.

    One request (Ctrl-C) starts no more cells. Two (Ctrl-C twice, TERM, a closed terminal) end the
    running ones.
    """

    def __init__(self) -> None:
        self.requests = 0

    def __enter__(self) -> _Stop:
        self.before = {}
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup stays nohup
                self.before[number] = signal.signal(number, self._count)
        return self

    def _count(self, number: int, _: object) -> None:
        self.requests += 1 if number == signal.SIGINT else 2

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)


class Started(Protocol):
    """A cell that runs somewhere."""

    cell: Cell

    def poll(self) -> Record | None:
        """The cell's record once it has ended, None before."""

    def stop(self, status: Status, message: str) -> None:
        """End the cell soon; its record will have this status and error message."""

    def kill(self) -> None:
        """End the cell at once, without a record."""


S = TypeVar("S", bound=Started)


def carry_out(
    cells: Sequence[Cell],
    settings: Settings,
    workers: int,
    place: Callable[[Cell, int], S],
    pause: Callable[[Iterable[S]], None],
    started: Callable[[Cell], None],
    ended: Callable[[Record], None],
    afterwards: Callable[[Record], None],
) -> list[Record]:
    """Run every cell, ``workers`` at a time, and return their records in the order they ended.

    A cell that another run on the same results folder is running is waited for: it ends with that
    run's record, or is run here if that run dies. Ctrl-C once lets the running cells finish (the
    others get no record), twice ends them as ``interrupted``.

    ``place``: starts a cell in a free slot, counted from 0.
    ``pause``: waits a moment, or until one of the running cells has ended.
    ``started``, ``ended``: called at once.
    ``afterwards``: called when the slot of an ended cell has its next cell.
    """
    waiting, elsewhere = list(reversed(cells)), []
    store, leases = Store(settings.results), Leases(settings.work / "leases")
    before = {cell.key: stamp(store, cell) for cell in cells}
    free = list(reversed(range(workers)))
    running: dict[int, S] = {}
    records: list[Record] = []
    unprocessed: list[Record] = []
    next_attempt = 0.0

    def finish(record: Record) -> None:
        leases.release(record.cell)
        records.append(record)
        unprocessed.append(record)
        ended(record)

    def follow_up() -> None:
        while unprocessed:
            afterwards(unprocessed.pop(0))

    def start(cell: Cell) -> None:
        """Start a cell in a free slot, unless another run on this results folder is running it or
        has ended it meanwhile."""
        if not leases.take(cell):
            elsewhere.append(cell)
            return
        started(cell)
        if stamp(store, cell) not in (None, before[cell.key]):
            finish(store.read(store.path(cell)))
            return
        slot = free.pop()
        try:
            running[slot] = place(cell, slot)
        except (EOFError, OSError) as error:
            free.append(slot)
            message = f"no process could be started: {error!r}"
            finish(write_or_warn(failure_record(cell, settings, "failed", "engine", message), store))

    with _Stop() as stop:
        try:
            while running or ((waiting or elsewhere) and not stop.requests):
                while free and waiting and not stop.requests:
                    start(waiting.pop())
                follow_up()
                pause(running.values())
                leases.renew()
                for slot, one in list(running.items()):
                    if stop.requests > 1:
                        one.stop("interrupted", "stopped by the user")
                    if (record := one.poll()) is not None:
                        del running[slot]
                        free.append(slot)
                        finish(record)
                if not waiting and time.monotonic() > next_attempt:
                    next_attempt = time.monotonic() + LEASE_POLL_S
                    waiting, elsewhere = elsewhere[::-1], []
            follow_up()
        finally:
            for one in running.values():  # a callback raised
                one.kill()
                leases.release(one.cell)
    return records
