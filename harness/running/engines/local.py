"""Cells on this machine: N at a time, each in a process of its own, forked from a server that has
torch and Lightning imported.

Whatever a cell does (raise, hang, die, eat the memory, leave processes behind), it ends in one
record and the grid goes on: the cell's own process writes it, and where that could not, this one
does.
"""

from __future__ import annotations

import ctypes
import faulthandler
import importlib
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import wait
from pathlib import Path

import psutil

from harness.errors import RecordError
from harness.records import Cell, Record, Store, now
from harness.running.engines.loop import carry_out, failure, stamp, written
from harness.running.grid import Settings
from harness.running.memory import resident_mib

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
"""glibc keeps freed tensors instead of handing them back and faulting them in again at every step:
1.5 to 2.5 times as fast."""

GRACE = 5.0  # seconds from TERM to KILL
POLL = 0.1  # seconds between two looks at the running cells
MEMORY_POLL = 0.5
START_PAUSES = (0.1, 0.3, 1.0, 2.0)  # seconds between tries to start a process
TAIL = 20  # log lines that go into the record of a cell that died
LOG_LIMIT = 64 * 2**20  # bytes from which a log is cut down to its beginning
LOG_HEAD = 2**20
LOG_END = 2**16
SERVER_LOST = 255  # what multiprocessing reports when the fork server died and nobody knows how its child ended
KILLED_FROM_OUTSIDE = (-signal.SIGKILL, SERVER_LOST)
"""Exit codes of a cell that somebody else ended: no result of the model, so the cell is started
once more, from its last checkpoint."""
KILLED_TWICE = (
    "killed twice from outside (SIGKILL), by a user or by the kernel for want of memory; the same command runs it again"
)
PR_SET_PDEATHSIG = 1


def gpus() -> list[str]:
    """Names of the GPUs that may be used, as CUDA_VISIBLE_DEVICES takes them; asked without
    importing torch."""
    if (visible := os.environ.get("CUDA_VISIBLE_DEVICES")) is not None:
        return [name for name in visible.split(",") if name not in ("", "-1")]
    if not shutil.which("nvidia-smi"):
        return []
    asked = subprocess.run(
        ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"], capture_output=True, text=True, check=False
    )
    return asked.stdout.split() if asked.returncode == 0 else []


def default_workers(threads: int, devices: int) -> int:
    """Cells that run at a time by default: one per share of ``devices`` GPUs, or per share of cores
    where there are at least 2 GiB."""
    if found := gpus():
        return max(1, len(found) // devices)
    memory = psutil.virtual_memory().total // 2**31
    return max(1, min(len(os.sched_getaffinity(0)) // (threads * devices), memory))


# --- in the cell's process ---


def _child(function: str, cell: Cell, settings: Settings, log: Path, visible: str | None) -> None:
    os.setsid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(
            PR_SET_PDEATHSIG, signal.SIGKILL
        )  # where the fork server dies, the cell is started again
    threading.Thread(target=_end_with_parent, daemon=True).start()
    output = os.open(
        log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644
    )  # to append, also after the log was cut
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    faulthandler.enable(all_threads=False)
    if visible is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = visible
    module, _, name = function.partition(":")
    record: Record = getattr(importlib.import_module(module), name)(cell, settings)
    Store(settings.results).write(record)


def _end_with_parent() -> None:
    """End this cell and all its processes when the run that started it is gone: the next run will
    start the cell again."""
    wait([multiprocessing.parent_process().sentinel])  # type: ignore[union-attr]
    os.killpg(0, signal.SIGKILL)


# --- in the parent ---


@contextmanager
def _environment(threads: int) -> Iterator[None]:
    """What the fork server must find in its environment: malloc and thread pools are set up when a
    library is loaded."""
    pools = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(threads))
    # OpenBLAS and Arrow's jemalloc start threads at import, where the fork server must have none;
    # the models use neither.
    single = {
        "OPENBLAS_NUM_THREADS": "1",
        "JE_ARROW_MALLOC_CONF": "background_thread:false",
        "TOKENIZERS_PARALLELISM": "false",
    }
    fixed = single | {"PYTHONHASHSEED": "0"}
    path = os.pathsep.join(filter(None, (str(Path(__file__).resolve().parents[3]), os.environ.get("PYTHONPATH"))))
    before = dict(os.environ)
    os.environ.update(MALLOC | pools | fixed | {"PYTHONPATH": path})
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


class _Running:
    """One cell in its process, from start to record."""

    def __init__(self, cell: Cell, settings: Settings, function: str, visible: str | None):
        self.cell, self.settings, self.function, self.visible = cell, settings, function, visible
        self.store = Store(settings.results)
        self.log = settings.log(cell)
        self.verdict: tuple[str, str] | None = (
            None  # status and message, where this process ended the cell before it had a result
        )
        self.kill_at: float | None = None
        self.retried = False
        self.start()

    def start(self) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(PRELOAD)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.found = stamp(self.store, self.cell)
        self.began, self.clock, self.memory_due = now(), time.monotonic(), 0.0
        for pause in (*START_PAUSES, None):
            self.process = context.Process(
                target=_child, args=(self.function, self.cell, self.settings, self.log, self.visible)
            )
            try:
                with _environment(self.settings.threads):
                    self.process.start()
                return
            except (EOFError, OSError):
                # A server that is just dying refuses, and counts as running until it is gone: only
                # then is a new one started.
                if pause is None:
                    raise
                time.sleep(pause)

    def written(self) -> bool:
        """Whether this run of the cell has written its record."""
        return stamp(self.store, self.cell) not in (None, self.found)

    def stop(self, status: str, message: str) -> None:
        """End the cell: TERM to its process group now, KILL after :data:`GRACE` seconds; its record
        will say why."""
        if self.kill_at is None:
            self.verdict = None if self.written() else (status, message)
            self.kill_at = time.monotonic() + GRACE
            self.signal(signal.SIGTERM)

    def kill(self) -> None:
        """End the cell at once; it leaves no record."""
        self.signal(signal.SIGKILL)

    def signal(self, number: int) -> None:
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            if self.process.exitcode is None:  # not yet the leader of its own group
                with suppress(ProcessLookupError):
                    os.kill(self.process.pid, number)

    def poll(self) -> Record | None:
        """Hold the cell to its limits; its record once it has ended."""
        if self.process.exitcode is None:
            self._limit()
            return None
        self.signal(signal.SIGKILL)  # processes that it left behind
        self._cap_log()
        if self.process.exitcode in KILLED_FROM_OUTSIDE and self.kill_at is None and not self.written():
            if self.retried:
                self.verdict = ("interrupted", KILLED_TWICE)
                return self._record()
            self.retried = True
            try:
                self.start()
            except (EOFError, OSError) as error:
                return self.failure("failed", "engine", f"no process could be started again: {error!r}")
            return None
        return self._record()

    def _limit(self) -> None:
        moment, settings = time.monotonic(), self.settings
        self._cap_log()
        if self.kill_at is not None:
            if moment > self.kill_at:
                self.signal(signal.SIGKILL)
        elif settings.timeout is not None and moment - self.clock > settings.timeout:
            self.stop("timeout", f"still running after {settings.timeout:g} s (--timeout)")
        elif settings.memory_limit_mib is not None and moment > self.memory_due:
            self.memory_due = moment + MEMORY_POLL
            if (used := resident_mib(self.process.pid)) > settings.memory_limit_mib:
                self.stop(
                    "oom", f"used {used:.0f} MiB of memory, allowed are {settings.memory_limit_mib} (--memory-limit)"
                )

    def _cap_log(self) -> None:
        """Keep the beginning and the end of a log that has grown without measure; what is printed
        from now on follows them."""
        with suppress(OSError):
            if self.log.stat().st_size > LOG_LIMIT:
                end = self._end()
                os.truncate(self.log, LOG_HEAD)
                with self.log.open("ab") as log:
                    log.write(
                        f"\n[archbench: the log had grown past {LOG_LIMIT >> 20} MiB and was cut here]\n".encode() + end
                    )

    def _record(self) -> Record:
        if self.verdict is None and self.written():
            try:
                return self.store.read(self.store.path(self.cell))
            except RecordError as error:
                return self.failure("failed", "RecordError", str(error))
        if self.verdict:
            status, message = self.verdict
            return self.failure(status, status, message)
        code = self.process.exitcode
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return self.failure("failed", how, self._tail() or f"ended with {how} and printed nothing")

    def _tail(self) -> str:
        try:
            text = self._end().decode(errors="replace")
        except FileNotFoundError:
            return ""
        return "\n".join(text.splitlines()[-TAIL:])

    def _end(self) -> bytes:
        """The last 64 KiB of the log."""
        with self.log.open("rb") as log:
            log.seek(max(0, self.log.stat().st_size - LOG_END))
            return log.read(LOG_END)

    def failure(self, status: str, type: str, message: str) -> Record:
        """Write and return the record that the cell's own process could not write."""
        seconds = {"total": round(time.monotonic() - self.clock, 3)}
        return written(
            failure(self.cell, self.settings, status, type, message, started=self.began, seconds=seconds), self.store
        )


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
    """Run every cell and return their records in the order they ended; the rest is as in
    :func:`carry_out`.

    ``function`` is ``module:name`` of ``(cell, settings) -> Record``, called in the cell's process.
    """
    found = gpus()

    def place(cell: Cell, slot: int) -> _Running:
        devices = range(slot * cell.devices, (slot + 1) * cell.devices)
        return _Running(cell, settings, function, ",".join(found[i % len(found)] for i in devices) if found else None)

    def pause(running: Iterable[_Running]) -> None:
        wait([one.process.sentinel for one in running], timeout=POLL)

    return carry_out(cells, settings, workers, place, pause, started, ended, afterwards)
