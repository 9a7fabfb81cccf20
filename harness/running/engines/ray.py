"""Cells as Ray tasks, on this machine or a cluster: Ray places them and starts those of a lost
worker or node again.

A task calls the local engine for its one cell, so a cell has on every node what it has here: a
process of its own with log, limits and malloc settings. What the cell left behind (record,
predictions, outcomes, log) comes back as bytes, and this process alone writes into the results
folder. Ray itself is imported inside functions: ``--engine local`` and the listings do without it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import shutil
import socket
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.errors import UsageError
from harness.files import write_whole
from harness.records import Cell, Record, Store, now
from harness.running.engines import local
from harness.running.engines.loop import carry_out, failure, log_name, written
from harness.running.grid import Settings

if TYPE_CHECKING:
    from ray import ObjectRef

RETRIES = 3
"""How often Ray starts a cell again whose worker or node was lost. How a model ends is a record and
not an exception: never again."""

MEMORY = 2 * 2**30
"""Bytes that a cell is taken to need where there is no ``--memory-limit``, as in the local
engine."""

_connected = False  # whether this module made the connection to Ray, and so ends it


class NodeError(Exception):
    """A node lacks something that every node must have; the message names both."""


class Taken(Exception):
    """The node ended the cell before it had a result, being told to stop by somebody other than the
    run: it belongs elsewhere."""


class Result(NamedTuple):
    """What a cell left behind on its node: the record's text, its other files by suffix, and its
    log."""

    record: str
    files: dict[str, bytes]
    log: bytes


# --- on the node ---


def node_folder(settings: Settings) -> Path:
    """Where a node keeps encoded corpora and checkpoints for a results folder: below its own
    TMPDIR, so on a disk of its own."""
    name = hashlib.sha256(os.fsencode(settings.results)).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"archbench-{os.getuid()}" / name


def run_here(cell: Cell, settings: Settings, function: str) -> Result:
    """Run a cell by the local engine of this node.

    Raises :class:`NodeError` when the node lacks a file, and :class:`Taken` when it ended the cell
    by itself.
    """
    _check(settings)
    folder = node_folder(settings)
    _private(folder.parent)
    work = folder / "results"
    work.mkdir(parents=True, exist_ok=True)
    for left in work.glob(f"{cell.key}-*"):  # of a worker that was killed
        shutil.rmtree(left, ignore_errors=True)
    results = Path(tempfile.mkdtemp(prefix=f"{cell.key}-", dir=work))
    here = dataclasses.replace(settings, results=results, work=folder)
    try:
        with _main_module_left_alone():
            [record] = local.run([cell], here, workers=1, function=function)
        if record.status == "interrupted" and (record.error or {}).get("message") != local.KILLED_TWICE:
            raise Taken(f"node {socket.gethostname()} ended it")
        beside = Store(results).path(cell)
        files = {
            path.name.removeprefix(cell.key): path.read_bytes()
            for path in beside.parent.glob(f"{cell.key}.*")
            if path != beside
        }
        return Result(record.to_json(), files, here.log(cell).read_bytes() if here.log(cell).exists() else b"")
    finally:
        shutil.rmtree(results, ignore_errors=True)
        here.log(cell).unlink(missing_ok=True)


def _check(settings: Settings) -> None:
    named = {"--data-dir": settings.data_dir, "--vectors": settings.vectors} | {
        f"--plugin {f}": f for f in settings.plugins
    }
    for option, path in named.items():
        if path is not None and not path.exists():
            raise NodeError(
                f"node {socket.gethostname()}: there is no {path} ({option}); it must be at the same path on every node"
            )


def _private(folder: Path) -> None:
    """Make a folder that is this user's alone: others may write into the folder for temporary
    files."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.lstat().st_uid != os.getuid():
        raise NodeError(
            f"node {socket.gethostname()}: {folder} belongs to somebody else; set TMPDIR before Ray is started there"
        )


@contextmanager
def _main_module_left_alone() -> Iterator[None]:
    """A child of multiprocessing imports the main module of its parent; Ray's would load Ray into
    every cell, for nothing."""
    main = sys.modules["__main__"]
    file = main.__dict__.pop("__file__", None)
    try:
        yield
    finally:
        if file is not None:
            main.__file__ = file


# --- in the run ---


def _connect() -> None:
    """Connect to the cluster that RAY_ADDRESS names, else to one that runs here, else start Ray on
    this machine."""
    global _connected
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault(
        "RAY_worker_niceness", "0"
    )  # a Ray that is started here would run its cells behind everything else
    # A cell that fills its node's memory is started again by Ray without end, unless this says
    # otherwise before Ray is imported.
    os.environ.setdefault("RAY_task_oom_retries", "1")
    try:
        import ray
    except ImportError as error:
        raise UsageError(f"--engine ray: {error}; install it with `pip install 'archbench[ray]'`") from error
    if ray.is_initialized():
        return
    _check_address(os.environ.get("RAY_ADDRESS", ""))
    try:
        ray.init(log_to_driver=False, logging_level="error", include_dashboard=False)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise UsageError(f"--engine ray: neither connected to Ray nor started it: {error}") from error
    _connected = True


def _check_address(address: str) -> None:
    """Knock before Ray does: it ends the whole process where nobody answers."""
    host, _, port = address.rpartition(":")
    if not port.isdecimal() or "/" in host:  # a word such as auto, or a protocol that is Ray's own business
        return
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except (OSError, OverflowError) as error:
        message = (
            f"RAY_ADDRESS={address}: no Ray cluster answers there ({error}); correct it, or unset it to have Ray"
            " started on this machine"
        )
        raise UsageError(f"--engine ray: {message}") from error


def _needs(threads: int, devices: int, memory_limit_mib: int | None = None) -> dict[str, float]:
    """Resources of one cell: GPUs where the cluster has any, and cores in any case."""
    import ray

    gpus = devices if ray.cluster_resources().get("GPU") else 0
    memory = MEMORY if memory_limit_mib is None else memory_limit_mib * 2**20
    return {"CPU": threads * devices, "GPU": gpus, "memory": memory}


def _room(needs: dict[str, float]) -> int:
    """How many such cells the cluster holds at a time; :class:`UsageError` when no node has room
    for one, as Ray would wait for ever."""
    import ray

    nodes = {node["NodeManagerHostname"]: node["Resources"] for node in ray.nodes() if node["Alive"]}
    each = [min(int(has.get(name, 0) // amount) for name, amount in needs.items() if amount) for has in nodes.values()]
    if not any(each):
        wanted = ", ".join(
            f"{amount / 2**30:.1f} GiB of memory" if n == "memory" else f"{amount:g} {n}"
            for n, amount in needs.items()
            if amount
        )
        found = "; ".join(
            f"{host}: {has.get('CPU', 0):g} CPU, {has.get('GPU', 0):g} GPU, {has.get('memory', 0) / 2**30:.1f} GiB"
            for host, has in nodes.items()
        )
        raise UsageError(
            f"--engine ray: a cell needs {wanted} on one node, and no node has that ({found}): "
            "ask for less with --threads, --devices or --memory-limit, or have a larger node join first"
        )
    return sum(each)


def default_workers(threads: int, devices: int) -> int:
    """Cells that run at a time by default: as many as the nodes that are there hold."""
    _connect()
    return _room(_needs(threads, devices))


class _Remote:
    """One cell in its Ray task."""

    def __init__(self, cell: Cell, settings: Settings, reference: ObjectRef):
        self.cell, self.settings, self.reference = cell, settings, reference
        self.began, self.clock = now(), time.monotonic()
        self.verdict: tuple[str, str] | None = None
        self.give_up_at = 0.0

    def stop(self, status: str, message: str) -> None:
        """End the cell: its worker is killed, and the cell ends with it."""
        if self.verdict is None:
            self.verdict = status, message
            self.give_up_at = time.monotonic() + local.GRACE
            self.kill()

    def kill(self) -> None:
        import ray

        ray.cancel(self.reference, force=True)

    def poll(self) -> Record | None:
        """Its record once it has ended; :class:`UsageError` when its node is not fit for any
        cell."""
        import ray
        from ray import exceptions

        if not ray.wait([self.reference], timeout=0)[0]:
            lost = self.verdict and time.monotonic() > self.give_up_at
            return self._failure(*self.verdict) if lost and self.verdict else None
        try:
            return self._received(ray.get(self.reference))
        except NodeError as error:
            raise UsageError(f"--engine ray: {error.cause}") from error  # type: ignore[attr-defined]  # what Ray raises is both
        except Taken as error:
            return self._failure("interrupted", f"{error.cause}, {RETRIES + 1} times")  # type: ignore[attr-defined]
        except exceptions.OutOfMemoryError as error:
            return self._failure(*(self.verdict or ("oom", str(error))))
        except exceptions.RayTaskError as error:
            if isinstance(error.cause, ImportError) or "failed to import" in str(error.cause):
                raise UsageError(
                    f"--engine ray: a node cannot load archbench ({error.cause}); install it on every node"
                ) from error
            return self._failure("failed", str(error))
        except exceptions.RayError as error:
            message = f"lost {RETRIES + 1} times with its Ray worker or node; the same command runs it again: {error}"
            return self._failure(*(self.verdict or ("interrupted", message)))

    def _received(self, result: Result) -> Record:
        """Put what came back into the results folder, the record last: where it is, the rest is
        too."""
        store, log = Store(self.settings.results), self.settings.log(self.cell)
        record = Record.from_json(result.record)
        if record.error is not None:
            record.error = record.error | {"log": log_name(self.cell, self.settings)}
        try:
            write_whole(log, result.log)
            for suffix, content in result.files.items():
                write_whole(store.path(self.cell).with_suffix(suffix), content)
        except OSError as error:
            warnings.warn(f"record not written: {error}", stacklevel=2)
            return record
        return written(record, store)

    def _failure(self, status: str, message: str) -> Record:
        seconds = {"total": round(time.monotonic() - self.clock, 3)}
        type = status if self.verdict else "engine"
        record = failure(self.cell, self.settings, status, type, message, started=self.began, seconds=seconds)
        return written(record, Store(self.settings.results))


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
    """Run every cell as a Ray task, ``workers`` at a time; the arguments and Ctrl-C are as in
    :func:`harness.running.engines.local.run`.

    Raises :class:`UsageError` when no node has room for a cell, or when one lacks a file that the
    cells need.
    """
    global _connected
    _connect()
    import ray

    needs = _needs(settings.threads, cells[0].devices if cells else 1, settings.memory_limit_mib)
    _room(needs)
    # Other exceptions would come again: they are faults of this program. A node's full disk or its
    # end is not another node's.
    options: dict[str, Any] = {
        "num_cpus": needs["CPU"],
        "num_gpus": needs["GPU"],
        "memory": needs["memory"],
        "max_retries": RETRIES,
        "retry_exceptions": [OSError, Taken],
        "scheduling_strategy": "SPREAD",
    }
    task = ray.remote(run_here)

    def place(cell: Cell, slot: int) -> _Remote:
        name = f"{cell.architecture} on {cell.task}, seed {cell.seed}"
        return _Remote(cell, settings, task.options(name=name, **options).remote(cell, settings, function))

    def pause(running: Iterable[_Remote]) -> None:
        if references := [one.reference for one in running]:
            ray.wait(references, timeout=local.POLL)
        else:
            time.sleep(local.POLL)

    try:
        return carry_out(cells, settings, workers, place, pause, started, ended, afterwards)
    finally:
        if _connected:
            ray.shutdown()
            _connected = False
