"""The loop that all engines share: it starts and watches cells, each of which ends in one
record."""

from __future__ import annotations

import os
import signal
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from harness.errors import RecordError, UsageError
from harness.messages import note
from harness.records import Cell, Record, Status, Store, environment, portable_text
from harness.records.code_digest import code_of_cell
from harness.running.cell_locks import Leases
from harness.running.parents import missing
from harness.running.pending import FAILED, Planned, skipped
from harness.running.worker_settings import Settings

LEASE_POLL_S = 1.0  # seconds between two attempts to take the cells that other runs have


def stamp(store: Store, cell: Cell) -> tuple[int, int] | None:
    """Identity of one version of a cell's record file; None where no file can be found."""
    try:
        status = store.path(cell).stat()
    except OSError:  # also where something else has taken the folder's place
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


def _leases(settings: Settings) -> Leases:
    try:
        return Leases(settings.work / "leases")
    except OSError as error:
        raise UsageError(_no_lease(settings, error)) from error


def _no_lease(settings: Settings, error: OSError) -> str:
    folder = settings.work / "leases"
    return (
        f"{folder}: no cell can be reserved ({error.strerror or error}); make room, or bring the results folder back,"
        " and run the same command again"
    )


class _Stop:
    """Counts requests to stop.

    One request (Ctrl-C) starts no more cells. Two (Ctrl-C twice, TERM, a closed terminal) end the
    running ones.
    """

    def __init__(self) -> None:
        self.requests = 0
        self._told = False

    def __enter__(self) -> _Stop:
        self.before = {}
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup stays nohup
                self.before[number] = signal.signal(number, self._count)
        return self

    def _count(self, number: int, _: object) -> None:
        self.requests += 1 if number == signal.SIGINT else 2

    def start_no_more(self) -> None:
        """Count one request, unless there was one."""
        self.requests = max(self.requests, 1)

    def tell(self, running: int) -> None:
        """Say once why a run that was asked to stop goes on."""
        if self.requests == 1 and running and not self._told:
            self._told = True
            cells = "1 cell" if running == 1 else f"{running} cells"
            note(f"waiting for {cells}; Ctrl-C again ends them")

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)


def _reserve(cell: Cell, leases: Leases, settings: Settings, stop: _Stop) -> bool:
    """Take the lease of a cell; False when another run has it, or where no lease can be written:
    then no more cells are started."""
    try:
        return leases.take(cell)
    except OSError as error:
        warnings.warn(f"{_no_lease(settings, error)}; no more cells are started", stacklevel=2)
        stop.start_no_more()
        return False


def _written(cell: Cell, store: Store) -> Record | None:
    """The record of a cell that somebody else has written; a damaged one is named."""
    try:
        return store.read(store.path(cell))
    except RecordError as error:
        warnings.warn(f"damaged record: its cell is skipped until you move the file away: {error}", stacklevel=2)
        return None


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


class _Order:
    """The cells that have not ended: their children wait for them."""

    def __init__(self, cells: Sequence[Cell]):
        self.unfinished = {cell.key for cell in cells}
        self.records: dict[str, Record] = {}

    def next(self, waiting: Sequence[Cell]) -> int | None:
        """The last place of a cell that can start; None without one."""
        for place in reversed(range(len(waiting))):
            if self.unfinished.isdisjoint(parent["key"] for parent in waiting[place].parents.values()):
                return place
        return None

    def end(self, key: str, record: Record | None = None) -> None:
        """A cell has ended, with or without a record."""
        self.unfinished.discard(key)
        if record is not None:
            self.records[key] = record


def _ended_already(
    cell: Cell, before: tuple[int, int] | None, settings: Settings, order: _Order
) -> tuple[bool, Record | None]:
    """True, and the record if it can be read, for a cell that somebody else has ended since its
    record was as ``before``, and for one that is skipped now because a parent was not kept.

    A record that ended ok is new in any case: the plan has set those aside that run again, and read
    the store long before the engine looked at ``before``.
    """
    store, found = Store(settings.results), None
    if (now := stamp(store, cell)) is not None:
        found = _written(cell, store)
        if now != before or found is None or found.status == "ok":
            return True, found
    if reason := missing(cell, settings.results, order.records.get):
        if found is not None and found.status in FAILED:  # asked for once more: it stands
            return True, found
        return True, write_or_warn(skipped(Planned(cell, reason), settings.command), store)
    return False, None


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

    A cell starts when its parents have ended, and is skipped where one of them was not kept.

    A cell that another run on the same results folder is running is waited for: it ends with that
    run's record, or is run here if that run dies. Ctrl-C once lets the running cells finish (the
    others get no record), twice ends them as ``interrupted``. No more cells are started once the
    results folder is gone or full. A damaged record that has appeared is named, and its cell left
    out. Raises :class:`UsageError` where no lease can be kept at all.

    ``place``: starts a cell in a free slot, counted from 0.
    ``pause``: waits a moment, or until one of the running cells has ended.
    ``started``, ``ended``: called at once.
    ``afterwards``: called when the slot of an ended cell has its next cell. Limits and signals wait
    for it, so it must return at once.
    """
    waiting, elsewhere = list(reversed(cells)), list[Cell]()
    store, leases = Store(settings.results), _leases(settings)
    before = {cell.key: stamp(store, cell) for cell in cells}
    free = list(reversed(range(workers)))
    running: dict[int, S] = {}
    records: list[Record] = []
    unprocessed: list[Record] = []
    next_attempt = 0.0
    order = _Order(cells)

    def finish(record: Record) -> None:
        leases.release(record.cell)
        order.end(record.key, record)
        records.append(record)
        unprocessed.append(record)
        ended(record)

    def follow_up() -> None:
        while unprocessed:
            afterwards(unprocessed.pop(0))

    def start(cell: Cell) -> None:
        """Start a cell in a free slot, unless another run on this results folder is running it or
        has ended it meanwhile, or a parent of it is not there."""
        if not _reserve(cell, leases, settings, stop):
            elsewhere.append(cell)
            return
        without_start, record = _ended_already(cell, before[cell.key], settings, order)
        if without_start:
            if record is None:
                order.end(cell.key)
                leases.release(cell)
            else:
                started(cell)
                finish(record)
            return
        started(cell)
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
                while free and not stop.requests and (place_of_next := order.next(waiting)) is not None:
                    start(waiting.pop(place_of_next))
                follow_up()
                stop.tell(len(running))
                pause(running.values())
                leases.renew()
                for slot, one in list(running.items()):
                    if stop.requests > 1:
                        one.stop("interrupted", "stopped by the user")
                    if (record := one.poll()) is not None:
                        del running[slot]
                        free.append(slot)
                        finish(record)
                if time.monotonic() > next_attempt and order.next(waiting) is None:
                    next_attempt = time.monotonic() + LEASE_POLL_S
                    waiting, elsewhere = waiting + elsewhere[::-1], []
            follow_up()
        finally:
            for one in running.values():  # a callback raised
                one.kill()
                leases.release(one.cell)
    return records
