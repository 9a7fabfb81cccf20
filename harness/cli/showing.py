"""A run in a terminal: its cells while they run, and what became of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from harness.cli.app import console
from harness.messages import note, report

if TYPE_CHECKING:
    from harness.running.request import Request


def run_and_show(request: Request) -> None:
    """Run the cells of a request, or list them where it asks for that alone; exit code 1 unless all
    of them ended well."""
    from harness.running.progress import Display, show, summarise
    from harness.running.session import Session
    from harness.saved_models.storage import why_not_refitted

    session = Session(request, tell=note, tell_error=report)
    pending = session.pending
    if request.dry_run:
        return show(pending, session.estimate, session.slots)
    if pending.run:
        with Display(pending.run, session.slots, session.estimate, session.settings.log, console()) as display:
            records = session.run(display.start, display.end)
    else:
        records = session.run()
    summarise(pending, records, session.store)
    for record in session.unkept(records):
        log = session.settings.log(record.cell)
        report(f"not kept: {record.cell.words}; the end of {log} says why")
    settings = session.settings
    for record in (*pending.finished, *records):
        if record.status != "ok" or not settings.refits(record.cell):
            continue
        if why := why_not_refitted(settings.results, record.key):
            again = f"`archbench models --remove {record.key}`, and the same command trains both again"
            note(f"not refitted: {record.cell.words}: {why.splitlines()[0]} (to try again: {again})")
    if not session.complete(records):
        raise typer.Exit(1)
