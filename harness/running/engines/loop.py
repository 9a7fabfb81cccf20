"""The loop that every engine shares: cells are started, watched, and end in one record each."""

from __future__ import annotations

import signal
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from harness.errors import RecordError
from harness.records import Cell, Record, Store, environment, portable_text
from harness.running.grid import Settings
from harness.running.leases import Claims

CLAIM_POLL = 1.0  # seconds between two looks at the cells that other runs have


def stamp(store: Store, cell: Cell) -> tuple[int, int] | None:
    """Tells one version of a record file from another."""
    try:
        status = store.path(cell).stat()
    except FileNotFoundError:
        return None
    return status.st_mtime_ns, status.st_ino


def log_name(cell: Cell, settings: Settings) -> str:
    """How a record names its cell's log: relative to the results folder where it lies inside."""
    log = settings.log(cell)
    return str(log.relative_to(settings.results)) if log.is_relative_to(settings.results) else str(log)


def failure(cell: Cell, settings: Settings, status: str, type: str, message: str, **fields: object) -> Record:
    """The record of a cell that did not end ok."""
    message = portable_text(message, settings.results, settings.data_dir)
    error = {"type": type, "message": message, "log": log_name(cell, settings)}
    machine = environment() | {"threads": settings.threads}
    return Record.skeleton(cell, status, command=settings.command, error=error, environment=machine, **fields)


def written(record: Record, store: Store) -> Record:
    """The record, which is on disk by then, unless the disk would not have it: then a warning says
    so."""
    try:
        store.write(record)
    except RecordError as error:
        warnings.warn(f"record not written: {error}", stacklevel=2)
    return record


class _Stop:
    """Counts requests to stop. Ctrl-C once: start no more cells. Twice, TERM, or a closed terminal:
    end those that run."""

    def __init__(self) -> None:
        self.asked = 0

    def __enter__(self) -> _Stop:
        self.before = {}
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup stays nohup
                self.before[number] = signal.signal(number, self._ask)
        return self

    def _ask(self, number: int, _: object) -> None:
        self.asked += 1 if number == signal.SIGINT else 2

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)


class Started(Protocol):
    """A cell that runs somewhere."""

    cell: Cell

    def poll(self) -> Record | None:
        """Its record once it has ended."""

    def stop(self, status: str, message: str) -> None:
        """End it soon; its record will say why."""

    def kill(self) -> None:
        """End it at once, without a record."""


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
    """Have every cell run, ``workers`` at a time, and return their records in the order they ended.

    ``place`` starts a cell in a free slot (counted from 0), and ``pause`` waits a moment, or until
    one of the cells has ended. ``started`` and ``ended`` are called at once, ``afterwards`` when
    the slot of the cell has got its next one. Ctrl-C once lets the running cells finish (the others
    get no record), twice ends them as ``interrupted``. A cell that another run on the same results
    folder is running is waited for; it ends with that run's record, or is run here if that run
    dies.
    """
    waiting, elsewhere = list(reversed(cells)), []
    store, claims = Store(settings.results), Claims(settings.work / "claims")
    before = {cell.key: stamp(store, cell) for cell in cells}
    free = list(reversed(range(workers)))
    running: dict[int, S] = {}
    records: list[Record] = []
    fresh: list[Record] = []
    look_again = 0.0

    def finish(record: Record) -> None:
        claims.release(record.cell)
        records.append(record)
        fresh.append(record)
        ended(record)

    def follow_up() -> None:
        while fresh:
            afterwards(fresh.pop(0))

    def start(cell: Cell) -> None:
        """Start a cell in a free slot, unless another run on this results folder has it or has
        ended it meanwhile."""
        if not claims.take(cell):
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
            finish(
                written(failure(cell, settings, "failed", "engine", f"no process could be started: {error!r}"), store)
            )

    with _Stop() as stop:
        try:
            while running or ((waiting or elsewhere) and not stop.asked):
                while free and waiting and not stop.asked:
                    start(waiting.pop())
                follow_up()
                pause(running.values())
                claims.beat()
                for slot, one in list(running.items()):
                    if stop.asked > 1:
                        one.stop("interrupted", "stopped by the user")
                    if (record := one.poll()) is not None:
                        del running[slot]
                        free.append(slot)
                        finish(record)
                if not waiting and time.monotonic() > look_again:
                    look_again = time.monotonic() + CLAIM_POLL
                    waiting, elsewhere = elsewhere[::-1], []
            follow_up()
        finally:
            for one in running.values():  # a callback raised
                one.kill()
                claims.release(one.cell)
    return records
