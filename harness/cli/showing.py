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
    session.tell_of_models(records)
    if not session.complete(records):
        raise typer.Exit(1)
