"""What a run tells: what it will do, its progress (live in a terminal, plain lines elsewhere), and how it ended."""

from __future__ import annotations

import time
from collections import Counter

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from harness.grid import Pending
from harness.records import Cell, Record, Store

COLOURS = {"ok": "green", "interrupted": "yellow"}  # every other status: red


class Display:
    """Shows cells as they start and end; a context manager around the run.

    ``total`` cells will run, ``workers`` at a time.
    """

    def __init__(self, total: int, workers: int, console: Console):
        self.total, self.workers, self.console = total, workers, console
        self.ended: Counter[str] = Counter()
        self.spent = 0.0
        self.since: dict[str, float] = {}
        self._rows: dict[str, TaskID] = {}
        self._overall = Progress(
            BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[state]}"), TimeElapsedColumn(), console=console
        )
        self._running = Progress(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=console)
        self._bar = self._overall.add_task("", total=total, state="")
        self._live = Live(Group(self._overall, self._running), console=console, refresh_per_second=4) if console.is_terminal else None

    def __enter__(self) -> Display:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def start(self, cell: Cell) -> None:
        """A cell begins."""
        self.since[cell.key] = time.monotonic()
        if self._live:
            self._rows[cell.key] = self._running.add_task(name(cell))
            self._update()

    def end(self, record: Record) -> None:
        """A cell ended: one line, and the totals."""
        seconds = time.monotonic() - self.since.pop(record.key)
        self.spent += seconds
        self.ended[record.status] += 1
        colour = COLOURS.get(record.status, "red")
        done = f"[dim]{self.ended.total()}/{self.total}[/dim]"
        self.console.print(
            f"{done} [{colour}]{record.status}[/{colour}] {name(record)} [dim]{seconds:.1f} s[/dim] {escape(result(record))}",
            highlight=False,
        )
        if self._live:
            self._running.remove_task(self._rows.pop(record.key))
            self._update()

    def _update(self) -> None:
        failed = self.ended.total() - self.ended["ok"] - self.ended["interrupted"]
        state = f"{len(self.since)} running, {failed} failed, {self.left()}"
        self._overall.update(self._bar, completed=self.ended.total(), state=state)

    def left(self) -> str:
        """The time still needed, when the cells to come take as long as those that ended."""
        ended = self.ended.total()
        if not ended:
            return "time left unknown"
        seconds = round(self.spent / ended * (self.total - ended) / self.workers)
        hours, minutes = divmod(seconds // 60, 60)
        return "about " + (f"{hours} h {minutes:02} min" if hours else f"{minutes} min {seconds % 60:02} s") + " left"


def name(of: Cell | Record) -> str:
    """Architecture, task and seed in words."""
    return f"{of.architecture} on {of.task}, seed {of.seed}"


def result(record: Record) -> str:
    """The main score, or the last line of what went wrong."""
    if record.error:
        lines = record.error.get("message", "").strip().splitlines() or [""]
        return f"{record.error.get('type', '')}: {lines[-1]}"
    score = record.scores.get("test", {}).get(record.main_metric)
    return "" if score is None else f"{record.main_metric} {score:.3f}"


def show(pending: Pending) -> None:
    """What a run would do, a line per cell."""
    for cell in pending.run:
        print(f"run   {name(cell)} ({cell.key})")
    for item in pending.skip:
        print(f"skip  {name(item.cell)}: {item.reason}")
    print(f"{len(pending.run)} to run, {len(pending.skip)} to skip, {len(pending.finished)} finished")


def summarise(pending: Pending, records: list[Record], store: Store) -> None:
    """How a run ended: counts, what failed and where its log is, and where the records are."""
    now, before = Counter(r.status for r in records), Counter(r.status for r in pending.finished)
    left = len(pending.run) - len(records)
    parts = [f"{count} {status}" for status, count in now.items()] + [f"{left} not started"] * bool(left)
    print(f"{len(records)} cells run" + (f": {', '.join(parts)}" if parts else ""))
    if pending.finished:
        print(f"{len(pending.finished)} finished before: {', '.join(f'{count} {status}' for status, count in before.items())}")
    if pending.skip:
        print(f"{len(pending.skip)} skipped: they do not fit (the record of each says why)")
    for record in records:
        if record.status not in ("ok", "interrupted"):
            print(f"  {record.status}: {name(record)}: {result(record)}; log: {(record.error or {}).get('log')}")
    if any(r.status not in ("ok", "skipped") for r in pending.finished):
        print("cells that failed before are kept as they are; --retry-failed runs them again")
    print(f"records: {store.folder / 'records'}")
