"""Cells that end in every way a cell can end, chosen by the architecture's name (test_engine.py and
test_cli.py run them)."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from harness.records import Cell, Record, Store
from harness.running.worker_settings import Settings
from harness.saved_models import storage

SLEEPER = "import time; time.sleep(60)"


def ignore_term() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(60)


def allocate() -> None:
    held = [bytearray(b"x" * (1 << 20)) for _ in range(400)]
    time.sleep(60)
    del held


def fork_often() -> None:
    """Ten processes with the same 200 MiB."""
    held = b"x" * (200 << 20)
    for _ in range(10):
        if os.fork() == 0:
            time.sleep(60)
    time.sleep(0.6)
    del held


def compute() -> None:
    end = time.process_time() + 60
    while time.process_time() < end:
        pass


SIMPLE: dict[str, Callable[[], object]] = {
    "hangs": ignore_term,
    "computes": compute,
    "waits": lambda: time.sleep(1),
    "allocates": allocate,
    "forks": fork_often,
    "holds_gil": lambda: ctypes.PyDLL(None).sleep(60),
    "stops": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "exits": lambda: os._exit(3),
    "segfaults": lambda: os.kill(os.getpid(), signal.SIGSEGV),
    "real_time": lambda: os.kill(os.getpid(), 40),
}


def leave_daemon(pid_file: Path, mib: int) -> None:
    """Start a process that nobody's parent or group leads to: in a session of its own, its parent
    gone."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            pid_file.with_suffix(".new").write_text(str(os.getpid()))
            pid_file.with_suffix(".new").rename(pid_file)
            held = b"x" * (mib << 20)
            time.sleep(60)
            del held
        os._exit(0)
    os.wait()
    while not pid_file.exists():
        time.sleep(0.01)


def run_cell(cell: Cell, settings: Settings) -> Record:
    """End as the name of the architecture says; return an ok record otherwise."""
    print(f"this is {cell.architecture}", flush=True)
    record = Record.skeleton(
        cell,
        "ok",
        command=settings.command,
        scores={"test": {"accuracy": 0.5}},
        main_metric="accuracy",
        seconds={"total": 0.1},
    )
    behaviour, begin = cell.architecture.partition("-")[0], time.monotonic()
    if "daemon" in cell.hyperparameters:
        leave_daemon(settings.work / "daemon.pid", cell.hyperparameters["daemon"])
    if behaviour == "raises":
        raise ValueError("a model that raises")
    if behaviour in SIMPLE:
        SIMPLE[behaviour]()
    if behaviour == "sleeps":
        time.sleep(cell.hyperparameters.get("seconds", 60))
    if behaviour == "keeps":
        time.sleep(0.3)
        storage.write_files(settings.results, cell.key, {"model.json": b"{}"})
        time.sleep(0.3)  # kept, and not yet ended
    if behaviour == "leaves_child":
        child = subprocess.Popen([sys.executable, "-c", SLEEPER])
        (settings.work / "child.pid").write_text(str(child.pid))
    if behaviour == "prints":
        while time.monotonic() < begin + 1.5:
            print("x" * 10_000, flush=False)
        time.sleep(0.5)  # what is printed while the log is being cut may be lost
        print("the last line", flush=True)
    if behaviour == "killed":  # by somebody else, as often as "times" says
        marks = settings.work / "marks"
        marks.mkdir(parents=True, exist_ok=True)
        if len(list(marks.iterdir())) < cell.hyperparameters["times"]:
            (marks / str(os.getpid())).touch()
            os.kill(os.getpid(), signal.SIGKILL)
    if behaviour == "kills_server":
        once = settings.work / "server_killed"
        if not once.exists():
            once.touch()
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(60)
    if behaviour == "writes_then_hangs":
        Store(settings.results).write(record)
        time.sleep(60)
    if behaviour == "environment":
        names = ("MALLOC_TRIM_THRESHOLD_", "OMP_NUM_THREADS", "PYTHONHASHSEED")
        found = {name: os.environ.get(name) for name in names}
        tasks = len(list(Path(f"/proc/{os.getppid()}/task").iterdir()))
        preloaded = sorted(set(sys.modules) & {"torch", "pytorch_lightning", "datasets", "evaluate"})
        return record.model_copy(
            update={"environment": found | {"server_threads": tasks, "preloaded": preloaded, "group": os.getpgid(0)}}
        )
    return record
