"""Small runs of `archbench run`, carried out in this process: parents and their children."""

from __future__ import annotations

from pathlib import Path

from harness.records import Record
from harness.running.request import Request
from harness.running.session import Session
from harness.running.worker import run_cell


def session(results: Path, architectures: str, *parents: str, tasks: str = "sst2", **fields: object) -> Session:
    """A session of two passes over forty examples, with parents such as ``tokens=bpe``."""
    known = dict(max_train=40, max_epochs=2, workers=1, mlflow="none", parents=parents)
    return Session(Request(results, architectures=architectures, tasks=tasks, **known | fields), lambda told: None)


def carried_out(session: Session) -> dict[str, Record]:
    """Records by architecture, of the cells one after the other, parents before their children."""
    waiting, records = list(session.pending.run), {}
    while waiting:
        keys = {cell.key for cell in waiting}
        cell = next(cell for cell in waiting if keys.isdisjoint(p["key"] for p in cell.parents.values()))
        waiting.remove(cell)
        records[cell.architecture] = record = run_cell(cell, session.settings)
        session.store.write(record)
    return records
