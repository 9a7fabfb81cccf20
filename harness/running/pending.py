"""The cells of a grid that are still to run: those without a record that stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from harness.errors import RecordError
from harness.records import UNFIT, Cell, Record, Store
from harness.records.code_digest import made_by_other_code

FAILED = ("failed", "oom", "timeout", "diverged")
"""Statuses of a cell whose model is at fault: a result, run again only when asked."""


class Planned(NamedTuple):
    """One cell, and why it is not run (None: it is). ``unfit`` is true where it never could be: the
    architecture is not for such tasks."""

    cell: Cell
    reason: str | None
    unfit: bool = False


class Pending(NamedTuple):
    """The work of a run: cells to compute, cells to note as skipped, records that stand, what is
    wrong with damaged ones, and the records that other code made (of those that stand, or of cells
    to compute again)."""

    run: list[Cell]
    skip: list[Planned]
    finished: list[Record]
    damaged: list[str]
    changed: list[Record]


def pending(planned: Sequence[Planned], store: Store, *, retry_failed: bool = False, changed: bool = False) -> Pending:
    """Planned cells that have no final record yet; a cell whose record is damaged is named and left
    alone. With ``changed``, a record that other code made is not final."""
    left = Pending([], [], [], [], [])
    unfinished = ("interrupted", "skipped", *(FAILED if retry_failed else ()))
    for item in planned:
        try:
            record = store.find(item.cell)
        except RecordError as error:
            left.damaged.append(str(error))
            continue
        if record is not None and (item.reason is not None or record.status not in unfinished):
            left.finished.append(record)
        elif item.reason is not None:
            left.skip.append(item)
        else:
            left.run.append(item.cell)
    unfit = {item.cell.key for item in planned if item.reason is not None}
    left.changed.extend(made_by_other_code(record for record in left.finished if record.key not in unfit))
    if changed:
        again = {record.key for record in left.changed}
        left.run.extend(record.cell for record in left.changed)
        left.finished[:] = [record for record in left.finished if record.key not in again]
    return left


def skipped(item: Planned, command: str) -> Record:
    """The record of a cell that is not run."""
    return Record.skeleton(
        item.cell,
        "skipped",
        command=command,
        error={"type": UNFIT if item.unfit else "skipped", "message": item.reason or "", "log": None},
    )
