"""Cells on this machine, each in a process of its own, forked from a server that has torch and
Lightning imported.

Whatever a cell does (raise, hang, die, use up the memory, leave processes behind), it ends in one
record and the grid goes on. The cell's own process writes the record; this process does where that
one could not.
"""

from __future__ import annotations

import faulthandler
import importlib
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import wait
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

import psutil

from harness.errors import RecordError
from harness.records import Cell, Record, Status, Store, now
from harness.records.provenance import usable_cores
from harness.registry.sorts import ROOT
from harness.running.engines.loop import carry_out, failure_record, stamp, write_or_warn
from harness.running.orphans import adopt_orphans, end_with_parent, kill_orphans, let_the_server_end
from harness.running.ruler import have_ruler, wants_ruler
from harness.running.usage import processor_s, resident_mib, used_mib
from harness.running.worker_settings import BY_TIMEOUT, Settings

PRELOAD = [
    "torch",
    "pytorch_lightning",
    "datasets",
    "evaluate",
    "harness.running.worker",
    "harness.running.warm_up",
    __name__,
]
"""Imported once by the fork server. None of them may start a thread: threads do not survive a
fork."""

MALLOC = {
    "MALLOC_MMAP_THRESHOLD_": "268435456",
    "MALLOC_TRIM_THRESHOLD_": "536870912",
    "MALLOC_TOP_PAD_": "67108864",
}
"""Settings with which glibc keeps freed tensors, instead of returning the memory and faulting it in
again at every step: 1.5 to 2.5 times as fast."""

MEMORY_MIB = 2048
"""Memory that a cell without ``--memory-limit`` is expected to want."""

TERM_GRACE_S = 5.0  # seconds from TERM to KILL
POLL_S = 0.1  # seconds between two checks of the running cells
USAGE_POLL_S = 0.5  # seconds between two samples of what a cell uses
START_PAUSES_S = (0.1, 0.3, 1.0, 2.0)  # seconds between attempts to start a process
TAIL_LINES = 20  # log lines that go into the record of a cell that died
MAX_LOG_BYTES = 64 * 2**20  # a log that grows larger loses its middle
LITTLE_ROOM_BYTES = 2**20  # so little room may be why a cell died
LOG_HEAD_BYTES, LOG_END_BYTES = 2**20, 2**16
SERVER_LOST = 255  # exit code by multiprocessing when the fork server died, which alone knows how the child ended
KILLED_FROM_OUTSIDE = (-signal.SIGKILL, SERVER_LOST)
"""Exit codes of a cell that somebody else ended. They are no result of the model, so the cell is
started once more, from its last checkpoint."""
KILLED_TWICE = (
    "killed twice by SIGKILL (by a user, by its own code, or by the kernel out of memory); run the same command to"
    " retry, with --memory-limit to have it end as oom if it is too large"
)


def gpus() -> list[str]:
    """Names of the usable GPUs in the format of CUDA_VISIBLE_DEVICES, found without torch."""
    if (visible := os.environ.get("CUDA_VISIBLE_DEVICES")) is not None:
        return [name for name in visible.split(",") if name not in ("", "-1")]
    if not shutil.which("nvidia-smi"):
        return []
    query = subprocess.run(
        ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"], capture_output=True, text=True, check=False
    )
    return query.stdout.split() if query.returncode == 0 else []


def default_workers(threads: int, devices: int, memory_limit_mib: int | None = None) -> int:
    """Default number of cells at a time: one for each ``devices`` GPUs.

    Without GPUs it is one for each ``threads * devices`` cores, but no more than have room in
    memory. A limit above :data:`MEMORY_MIB` says nothing of what a cell wants.
    """
    if names := gpus():
        return max(1, len(names) // devices)
    wanted = min(MEMORY_MIB, memory_limit_mib or MEMORY_MIB) * 2**20
    rooms: int = psutil.virtual_memory().total // wanted
    return max(1, min(usable_cores() // (threads * devices), rooms))


# --- in the cell's process ---


def _child(function: str, cell: Cell, settings: Settings, log: Path, visible: str | None) -> None:
    os.setsid()
    end_with_parent()  # if the fork server dies, the cell must end too: it is started again
    let_the_server_end()
    adopt_orphans()
    # O_APPEND: output follows the end of the log also after it was cut.
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    faulthandler.enable(all_threads=False)
    if visible is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = visible
    module, _, name = function.partition(":")
    record: Record = getattr(importlib.import_module(module), name)(cell, settings)
    Store(settings.results).write(record)


# --- in the parent ---


@contextmanager
def forking(threads: int) -> Iterator[ForkServerContext]:
    """Context of processes that are forked from the server, to be started within this block.

    The first of them starts the server, in an environment that its libraries read when they are
    loaded. The main module is hidden meanwhile. A child of multiprocessing would import it, which
    would run a script that starts a grid again, and load Ray into every cell of a Ray worker.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*PRELOAD, "harness.running.fork_server"])
    pools = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(threads))
    # OpenBLAS and Arrow's jemalloc start threads at import, where the fork server must have none;
    # the models use neither.
    single = {
        "OPENBLAS_NUM_THREADS": "1",
        "JE_ARROW_MALLOC_CONF": "background_thread:false",
        "TOKENIZERS_PARALLELISM": "false",
    }
    # A folder of the user's that is called harness would be found first where the run was started.
    fixed = single | {"PYTHONHASHSEED": "0", "PYTHONSAFEPATH": "1"}
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    variables, main = dict(os.environ), sys.modules["__main__"].__dict__
    origin: dict[str, Any] = {name: main[name] for name in ("__file__", "__spec__") if name in main}
    main.pop("__file__", None)
    main["__spec__"] = None
    os.environ.update(MALLOC | pools | fixed | {"PYTHONPATH": path})
    try:
        yield context
    finally:
        os.environ.clear()
        os.environ.update(variables)
        main.update(origin)


class _Running:
    """A cell in its process, from start to record."""

    def __init__(self, cell: Cell, settings: Settings, function: str, visible: str | None):
        self.cell, self.settings, self.function, self.visible = cell, settings, function, visible
        self.store = Store(settings.results)
        self.log = settings.log(cell)
        self.verdict: tuple[Status, str] | None = None
        """Status and message if this process ended the cell before it had a result."""
        self.kill_at: float | None = None
        self.retried = False
        self.start()

    def start(self) -> None:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.old_stamp = stamp(self.store, self.cell)
        self.usage_due = 0.0
        self.computed = 0.0  # seconds of processor time, where they are limited
        if wants_ruler(self.cell):
            with forking(self.settings.threads):  # its speed under the same settings of malloc as a cell's
                have_ruler(self.settings.work / "ruler")
        for pause in (*START_PAUSES_S, None):
            try:
                with forking(self.settings.threads) as context:
                    self.process = context.Process(
                        target=_child, args=(self.function, self.cell, self.settings, self.log, self.visible)
                    )
                    self.process.start()
                # Counted from here: the first cell does not pay for the start of the fork server.
                self.began, self.clock = now(), time.monotonic()
                return
            except (EOFError, OSError):
                # A dying server refuses, and counts as running until it is gone: only then is a new
                # one started.
                if pause is None:
                    raise
                time.sleep(pause)

    def has_record(self) -> bool:
        """True once this run of the cell has written its record."""
        return stamp(self.store, self.cell) not in (None, self.old_stamp)

    def stop(self, status: Status, message: str) -> None:
        """End the cell: TERM to its process group now, KILL after :data:`TERM_GRACE_S` seconds.

        Its record will have this status and error message.
        """
        if self.kill_at is None:
            self.verdict = None if self.has_record() else (status, message)
            self.kill_at = time.monotonic() + TERM_GRACE_S
            self.signal(signal.SIGTERM)

    def kill(self) -> None:
        """End the cell at once; it leaves no record."""
        self.signal(signal.SIGKILL)
        self.process.join(TERM_GRACE_S)
        kill_orphans()

    @property
    def pid(self) -> int:
        """Number of the cell's process, which leads a process group of the same number."""
        assert self.process.pid is not None, "started by __init__"
        return self.process.pid

    def signal(self, number: int) -> None:
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            if self.process.exitcode is None:  # not yet the leader of its own group
                with suppress(ProcessLookupError):
                    os.kill(self.pid, number)

    def poll(self) -> Record | None:
        """Hold the cell to its limits; returns its record once it has ended."""
        if self.process.exitcode is None:
            self._limit()
            return None
        self.signal(signal.SIGKILL)  # processes that it left behind in its group
        kill_orphans()
        self._cap_log()
        if self.process.exitcode in KILLED_FROM_OUTSIDE and self.kill_at is None and not self.has_record():
            if self.retried:
                self.verdict = ("interrupted", KILLED_TWICE)
                return self._record()
            self.retried = True
            try:
                self.start()
            except (EOFError, OSError) as error:
                return self._failure("failed", "engine", f"no process could be started again: {error!r}")
            return None
        return self._record()

    def _limit(self) -> None:
        moment, settings = time.monotonic(), self.settings
        self._cap_log()
        if self.kill_at is not None:
            if moment > self.kill_at:
                self.signal(signal.SIGKILL)
        elif settings.timeout is not None and moment - self.clock > settings.timeout:
            self.stop("timeout", f"still running after {settings.timeout:g} s {BY_TIMEOUT}")
        elif moment > self.usage_due:
            self._limit_usage()
            spent = time.monotonic() - moment
            self.usage_due = moment + max(USAGE_POLL_S, 10 * spent)  # large processes are slow to measure

    def _limit_usage(self) -> None:
        """End the cell if it has used more processor time or memory than it may."""
        seconds, most = self.settings.cpu_limit, self.settings.memory_limit_mib
        if seconds is not None:
            self.computed = max(self.computed, processor_s(self.pid))
        if seconds is not None and self.computed > seconds:
            self.stop("timeout", f"still running after {seconds:g} s of processor time (--cpu-limit)")
        elif most is not None and resident_mib(self.pid) > most and (used := used_mib(self.pid)) > most:
            self.stop("oom", f"used {used:.0f} MiB of memory; the limit is {most} MiB (--memory-limit)")

    def _cap_log(self) -> None:
        """Cut the middle out of an oversized log; later output follows its end."""
        with suppress(OSError):
            if self.log.stat().st_size > MAX_LOG_BYTES:
                end = self._end()
                os.truncate(self.log, LOG_HEAD_BYTES)
                note = f"\n[archbench: the log had grown past {MAX_LOG_BYTES >> 20} MiB and was cut here]\n"
                with self.log.open("ab") as log:
                    log.write(note.encode() + end)

    def _record(self) -> Record:
        if self.verdict is None and self.has_record():
            try:
                return self.store.read(self.store.path(self.cell))
            except RecordError as error:
                return self._failure("failed", "RecordError", str(error))
        if self.verdict:
            status, message = self.verdict
            return self._failure(status, status, message)
        code = self.process.exitcode or 0
        names = {int(number): number.name for number in signal.Signals}  # most real-time signals have none
        end = f"signal {names.get(-code, -code)}" if code < 0 else f"exit code {code}"
        return self._failure("failed", end, (self._tail() or f"ended with {end} and printed nothing") + self._room())

    def _room(self) -> str:
        """A line for the record where the disk is full: then the log lacks the reason."""
        with suppress(OSError):
            if (free := shutil.disk_usage(self.settings.results).free) < LITTLE_ROOM_BYTES:
                return f"\nNo space left on the disk of the results folder, or hardly any: {free >> 10} KiB"
        return ""

    def _tail(self) -> str:
        try:
            text = self._end().decode(errors="replace")
        except OSError:
            return ""
        return "\n".join(text.splitlines()[-TAIL_LINES:])

    def _end(self) -> bytes:
        """The last 64 KiB of the log."""
        with self.log.open("rb") as log:
            log.seek(max(0, self.log.stat().st_size - LOG_END_BYTES))
            return log.read(LOG_END_BYTES)

    def _failure(self, status: Status, type: str, message: str) -> Record:
        """Write and return the record that the cell's own process could not write."""
        seconds = {"total": round(time.monotonic() - self.clock, 3)}
        seconds |= {"total_processor": round(self.computed, 3)} if self.computed else {}
        fields = {"started": self.began, "seconds": seconds}
        return write_or_warn(failure_record(self.cell, self.settings, status, type, message, **fields), self.store)


def run(
    cells: Sequence[Cell],
    settings: Settings,
    *,
    workers: int,
    function: str = "harness.running.worker:run_cell",
    started: Callable[[Cell], None] = lambda cell: None,
    ended: Callable[[Record], None] = lambda record: None,
    afterwards: Callable[[Record], None] = lambda record: None,
) -> list[Record]:
    """Run every cell, ``workers`` at a time, and return their records in the order they ended.

    ``function`` is ``module:name`` of ``(cell, settings) -> Record``, called in the cell's process.
    The callbacks and Ctrl-C are as in :func:`~harness.running.engines.loop.carry_out`.
    """
    names = gpus()

    def place(cell: Cell, slot: int) -> _Running:
        devices = range(slot * cell.devices, (slot + 1) * cell.devices)
        visible = ",".join(names[i % len(names)] for i in devices) if names else None
        return _Running(cell, settings, function, visible)

    def pause(running: Iterable[_Running]) -> None:
        wait([one.process.sentinel for one in running], timeout=POLL_S)

    return carry_out(cells, settings, workers, place, pause, started, ended, afterwards)
