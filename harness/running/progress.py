"""Console output of a run: the plan, the progress (live in a terminal, plain lines elsewhere) and
the summary."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from harness.records import Cell, Record, Store
from harness.records.official_test import OTHER_TEST_SIZE, declared_sizes, other_test_size
from harness.running.estimate import Estimate
from harness.running.pending import Pending

COLOURS = {"ok": "green", "interrupted": "yellow"}  # every other status: red


class _LastEpoch(ProgressColumn):
    """Last progress line of a running cell."""

    max_refresh = 1.0

    def render(self, task: Task) -> Text:
        return Text(last_epoch(task.fields["log"]), style="dim")


def last_epoch(log: Path) -> str:
    """Newest line that begins with "epoch" in the last 4 KiB of a log; empty where there is
    none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 4096))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    return next((line for line in reversed(lines) if line.startswith("epoch ")), "")


class Display:
    """Shows cells as they start and end; a context manager around the run.

    ``cells`` will run, ``workers`` at a time; ``log`` gives the log file of each.
    """

    def __init__(
        self, cells: Sequence[Cell], workers: int, estimate: Estimate, log: Callable[[Cell], Path], console: Console
    ):
        self.total, self.workers, self.log, self.console = len(cells), workers, log, console
        self.expected = {cell.key: estimate(cell) for cell in cells}
        self.ended: Counter[str] = Counter()
        self.spent = 0.0
        self.since: dict[str, float] = {}
        self._rows: dict[str, TaskID] = {}
        self._overall = Progress(
            BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[state]}"), TimeElapsedColumn(), console=console
        )
        self._running = Progress(
            SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), _LastEpoch(), console=console
        )
        self._bar = self._overall.add_task("", total=self.total, state="")
        self._live = (
            Live(Group(self._overall, self._running), console=console, refresh_per_second=4)
            if console.is_terminal
            else None
        )

    def __enter__(self) -> Display:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def start(self, cell: Cell) -> None:
        """Show that a cell begins."""
        self.since[cell.key] = time.monotonic()
        if self._live:
            self._rows[cell.key] = self._running.add_task(cell.words, log=self.log(cell))
            self._update()

    def end(self, record: Record) -> None:
        """Print one line for a cell that ended, and update the totals."""
        passed = time.monotonic() - self.since.pop(record.key)
        self.spent += passed
        seconds = record.seconds.get("total", passed)  # this process may notice the end of a cell late
        self.ended[record.status] += 1
        del self.expected[record.key]
        colour = COLOURS.get(record.status, "red")
        done = f"[dim]{self.ended.total()}/{self.total}[/dim]"
        self.console.print(
            f"{done} [{colour}]{record.status}[/{colour}] {record.cell.words} [dim]{seconds:.1f} s[/dim]"
            f" {escape(result(record))}",
            highlight=False,
        )
        if self._live:
            self._running.remove_task(self._rows.pop(record.key))
            self._update()

    def _update(self) -> None:
        failed = self.ended.total() - sum(self.ended[status] for status in ("ok", "skipped", "interrupted"))
        state = f"{len(self.since)} running, {failed} failed, {self.time_left()}"
        self._overall.update(self._bar, completed=self.ended.total(), state=state)

    def time_left(self) -> str:
        """Predicted time until the run ends, as text.

        A cell without an earlier record is taken to last as long as the mean of those that ended.
        """
        ended = self.ended.total()
        if not ended and None in self.expected.values():
            return "time left unknown"
        mean = self.spent / ended if ended else 0.0
        now = time.monotonic()
        needed = (
            max(0.0, (mean if expected is None else expected) - (now - self.since[key] if key in self.since else 0.0))
            for key, expected in self.expected.items()
        )
        return f"about {duration(sum(needed) / self.workers)} left"


def duration(seconds: float) -> str:
    """Seconds as text, coarser for longer times."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"


def result(record: Record) -> str:
    """Main score of a record as text, or the last line of its error."""
    if record.error:
        lines = record.error.get("message", "").strip().splitlines() or [""]
        return f"{record.error.get('type', '')}: {lines[-1]}"
    score = record.scores.get("test", {}).get(record.main_metric)
    note = other_test_size(record, declared_sizes(record).get("test"))
    mark = f" {OTHER_TEST_SIZE} {note}" if note else ""
    return "" if score is None else f"{record.main_metric} {score:.3f}{mark}"


def show(pending: Pending, estimate: Estimate, workers: int) -> None:
    """Print what a run would do, one line per cell, and its predicted duration."""
    for cell in pending.run:
        seconds = estimate(cell)
        parents = {parent["key"]: parent["architecture"] for parent in cell.parents.values()}
        after = "".join(f", after {architecture} ({key})" for key, architecture in parents.items())
        about = f", about {duration(seconds)}" if seconds is not None else ""
        print(f"run   {cell.words} ({cell.key}){after}{about}")
    for item in pending.skip:
        print(f"skip  {item.cell.words}: {item.reason}")
    for record in pending.changed:
        print(f"other {record.cell.words} ({record.key}): {record.status}, made by other code")
    print(f"{len(pending.run)} to run, {len(pending.skip)} to skip, {len(pending.finished)} finished")
    if pending.run:
        total = estimate.total(pending.run, workers)
        time_needed = f"about {duration(total)}" if total is not None else "unknown (no earlier records)"
        print(f"time with {workers} at a time: {time_needed}")


def summarise(pending: Pending, records: list[Record], store: Store) -> None:
    """Print how a run ended: counts, errors with their logs, and the folder of the records."""
    waiting = len(pending.run) - len(records)
    parts = _counts(records) + [f"{waiting} not started"] * bool(waiting)
    print(f"{len(records)} cells run" + (f": {', '.join(parts)}" if parts else ""))
    if pending.finished:
        print(f"{len(pending.finished)} finished before: {', '.join(_counts(pending.finished))}")
    if unfit := sum(item.unfit for item in pending.skip):
        print(f"{unfit} skipped because they do not fit (each record holds the reason)")
    for reason, count in Counter(item.reason for item in pending.skip if not item.unfit).items():
        print(f"{count} skipped: {reason}")
    for record in records:
        if record.status not in ("ok", "interrupted"):
            print(f"  {record.status}: {record.cell.words}: {result(record)}; log: {(record.error or {}).get('log')}")
    if any(r.status not in ("ok", "skipped") for r in pending.finished):
        print("cells that failed before are not run again; use --retry-failed to run them")
    print(f"records: {store.folder / 'records'}")


def _counts(records: Sequence[Record]) -> list[str]:
    """Number of records by status, such as ``3 ok``."""
    return [f"{count} {status}" for status, count in Counter(record.status for record in records).items()]
