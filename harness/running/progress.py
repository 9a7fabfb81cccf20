"""What a run tells: what it will do, its progress (live in a terminal, plain lines elsewhere), and
how it ended."""

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
from harness.running.grid import Pending
from harness.running.order import Estimate

COLOURS = {"ok": "green", "interrupted": "yellow"}  # every other status: red


class _LastEpoch(ProgressColumn):
    """What a running cell told last: the newest line of its log that begins with "epoch"."""

    max_refresh = 1.0

    def render(self, task: Task) -> Text:
        return Text(last_epoch(task.fields["log"]), style="dim")


def last_epoch(log: Path) -> str:
    """The newest line about an epoch near the end of a log; empty where there is none."""
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
        """A cell begins."""
        self.since[cell.key] = time.monotonic()
        if self._live:
            self._rows[cell.key] = self._running.add_task(name(cell), log=self.log(cell))
            self._update()

    def end(self, record: Record) -> None:
        """A cell ended: one line, and the totals."""
        passed = time.monotonic() - self.since.pop(record.key)
        self.spent += passed
        seconds = record.seconds.get("total", passed)  # the run may have been busy when the cell ended
        self.ended[record.status] += 1
        del self.expected[record.key]
        colour = COLOURS.get(record.status, "red")
        done = f"[dim]{self.ended.total()}/{self.total}[/dim]"
        self.console.print(
            f"{done} [{colour}]{record.status}[/{colour}] {name(record)} [dim]{seconds:.1f} s[/dim]"
            f" {escape(result(record))}",
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
        """The time still needed: by earlier records, and as long as the cells that ended for those
        without one."""
        ended = self.ended.total()
        if not ended and None in self.expected.values():
            return "time left unknown"
        usual = self.spent / ended if ended else 0.0
        now = time.monotonic()
        needed = (
            max(0.0, (usual if expected is None else expected) - (now - self.since[key] if key in self.since else 0.0))
            for key, expected in self.expected.items()
        )
        return f"about {duration(sum(needed) / self.workers)} left"


def duration(seconds: float) -> str:
    """Seconds in words, coarser for longer times."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"


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


def show(pending: Pending, estimate: Estimate, workers: int) -> None:
    """What a run would do, a line per cell, and how long that should take."""
    for cell in pending.run:
        seconds = estimate(cell)
        print(f"run   {name(cell)} ({cell.key})" + (f", about {duration(seconds)}" if seconds is not None else ""))
    for item in pending.skip:
        print(f"skip  {name(item.cell)}: {item.reason}")
    print(f"{len(pending.run)} to run, {len(pending.skip)} to skip, {len(pending.finished)} finished")
    if pending.run:
        total = estimate.total(pending.run, workers)
        known = f"about {duration(total)}" if total is not None else "unknown: no earlier record tells"
        print(f"time with {workers} at a time: {known}")


def summarise(pending: Pending, records: list[Record], store: Store) -> None:
    """How a run ended: counts, what failed and where its log is, and where the records are."""
    now, before = Counter(r.status for r in records), Counter(r.status for r in pending.finished)
    left = len(pending.run) - len(records)
    parts = [f"{count} {status}" for status, count in now.items()] + [f"{left} not started"] * bool(left)
    print(f"{len(records)} cells run" + (f": {', '.join(parts)}" if parts else ""))
    if pending.finished:
        print(
            f"{len(pending.finished)} finished before:"
            f" {', '.join(f'{count} {status}' for status, count in before.items())}"
        )
    if pending.skip:
        print(f"{len(pending.skip)} skipped: they do not fit (the record of each says why)")
    for record in records:
        if record.status not in ("ok", "interrupted"):
            print(f"  {record.status}: {name(record)}: {result(record)}; log: {(record.error or {}).get('log')}")
    if any(r.status not in ("ok", "skipped") for r in pending.finished):
        print("cells that failed before are kept as they are; --retry-failed runs them again")
    print(f"records: {store.folder / 'records'}")
