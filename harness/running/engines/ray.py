"""Cells as Ray tasks, on this machine or a cluster. Ray places them, and restarts those of a lost
worker or node.

A task runs its one cell with the local engine, so a cell has on every node what it has here: a
process of its own with log, limits and malloc settings. The files of the cell (record, predictions,
outcomes, log) come back as bytes, and only this process writes into the results folder. Ray is
imported inside functions, because ``--engine local`` and the listings do without it.
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
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.errors import UsageError
from harness.files import write_whole
from harness.records import Cell, Record, Status, Store, now
from harness.running.engines import local
from harness.running.engines.loop import carry_out, failure_record, log_name, write_or_warn
from harness.running.worker_settings import Settings
from harness.saved_models import storage

if TYPE_CHECKING:
    from ray import ObjectRef

RETRIES = 3
"""Number of restarts after a lost worker or node. A failed model is a record, not an exception, and
is never restarted."""

_connected = False  # True while there is a connection that this module made, and so has to end


class NodeError(Exception):
    """A node lacks something that every node needs; the message names both."""


class StoppedByNode(Exception):
    """The node stopped the cell before it finished, and not on our request. The cell should run
    elsewhere."""


class Returned(NamedTuple):
    """The files of a cell as they come back from its node: the record's text, the other files by
    suffix, the log, and the files of its kept model by name."""

    record: str
    files: dict[str, bytes]
    log: bytes
    model: dict[str, bytes]


# --- on the node ---


def node_folder(settings: Settings) -> Path:
    """Folder in which a node keeps encoded corpora and checkpoints for a results folder.

    It is below the node's own TMPDIR, so on a disk of its own.
    """
    name = hashlib.sha256(os.fsencode(settings.results)).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"archbench-{os.getuid()}" / name


def run_here(
    cell: Cell, settings: Settings, function: str, parents: Mapping[str, Mapping[str, bytes]] = MappingProxyType({})
) -> Returned:
    """Run a cell with the local engine of this node; ``parents`` are the files of the kept models
    that it starts from, by key.

    Raises :class:`NodeError` when the node lacks a file, and :class:`StoppedByNode` when it stopped
    the cell by itself.
    """
    _check(settings)
    folder = node_folder(settings)
    _private(folder.parent)
    work = folder / "results"
    work.mkdir(parents=True, exist_ok=True)
    for leftover in work.glob(f"{cell.key}-*"):  # of a worker that was killed
        shutil.rmtree(leftover, ignore_errors=True)
    results = Path(tempfile.mkdtemp(prefix=f"{cell.key}-", dir=work))
    here = dataclasses.replace(settings, results=results, work=folder)
    try:
        for key, content in parents.items():
            storage.write_files(results, key, content)
        record = _run(cell, here, function)
        if record.status == "interrupted" and (record.error or {}).get("message") != local.KILLED_TWICE:
            raise StoppedByNode(f"node {socket.gethostname()} stopped it")
        record_file = Store(results).path(cell)
        files = {
            path.name.removeprefix(cell.key): path.read_bytes()
            for path in record_file.parent.glob(f"{cell.key}.*")
            if path != record_file
        }
        log = here.log(cell).read_bytes() if here.log(cell).exists() else b""
        return Returned(record.to_json(), files, log, storage.files_of(results, cell.key))
    finally:
        shutil.rmtree(results, ignore_errors=True)
        here.log(cell).unlink(missing_ok=True)


def _run(cell: Cell, settings: Settings, function: str) -> Record:
    try:
        records = local.run([cell], settings, workers=1, function=function)
    except UsageError as error:  # the node's folder is full or not ours: another node has its own
        raise StoppedByNode(f"node {socket.gethostname()}: {error}") from error
    if not records:  # the folder filled up just now, or the node ends
        raise StoppedByNode(f"node {socket.gethostname()} did not start it")
    return records[0]


def _check(settings: Settings) -> None:
    paths = {"--data-dir": settings.data_dir, "--vectors": settings.vectors}
    for option, path in (paths | {f"--plugin {file}": file for file in settings.plugins}).items():
        if path is not None and not path.exists():
            raise NodeError(
                f"node {socket.gethostname()}: there is no {path} ({option}); it must be at the same path on every node"
            )


def _private(folder: Path) -> None:
    """Create a folder for this user alone: others may write into the folder for temporary files."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.lstat().st_uid != os.getuid():
        raise NodeError(
            f"node {socket.gethostname()}: {folder} belongs to somebody else; set TMPDIR before Ray is started there"
        )


# --- in the run ---


def _connect() -> None:
    """Connect to the cluster at RAY_ADDRESS, else to one on this machine, else start Ray here."""
    global _connected
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # A Ray that is started here would run its cells with the lowest priority.
    os.environ.setdefault("RAY_worker_niceness", "0")
    # Ray would restart a cell that fills its node's memory without end. This must be set before Ray
    # is imported.
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
        raise UsageError(f"--engine ray: could neither connect to Ray nor start it: {error}") from error
    _connected = True


def _check_address(address: str) -> None:
    """Probe the address first, because Ray aborts the process if no cluster answers."""
    host, _, port = address.rpartition(":")
    if not port.isdecimal() or "/" in host:  # a word such as auto, or a protocol that Ray checks itself
        return
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except (OSError, OverflowError) as error:
        message = (
            f"RAY_ADDRESS={address}: no Ray cluster answers there ({error}); correct it, or unset it to start Ray"
            " on this machine"
        )
        raise UsageError(f"--engine ray: {message}") from error


def _needs(threads: int, devices: int, memory_limit_mib: int | None = None) -> dict[str, float]:
    """Resources of one cell by Ray's names; GPUs only where the cluster has any."""
    import ray

    gpus = devices if ray.cluster_resources().get("GPU") else 0
    memory = local.MEMORY_MIB if memory_limit_mib is None else memory_limit_mib
    return {"CPU": threads * devices, "GPU": gpus, "memory": memory * 2**20}


def _room(needs: dict[str, float]) -> int:
    """Number of such cells that the cluster holds at a time.

    Raises :class:`UsageError` when no node has room for one: Ray would wait for ever.
    """
    import ray

    nodes = [(node["NodeManagerHostname"], node["Resources"]) for node in ray.nodes() if node["Alive"]]
    rooms = [min(int(has.get(name, 0) // amount) for name, amount in needs.items() if amount) for _, has in nodes]
    if not any(rooms):
        needed = ", ".join(
            f"{amount / 2**30:.1f} GiB of memory" if n == "memory" else f"{amount:g} {n}"
            for n, amount in needs.items()
            if amount
        )
        available = "; ".join(
            f"{host}: {has.get('CPU', 0):g} CPU, {has.get('GPU', 0):g} GPU, {has.get('memory', 0) / 2**30:.1f} GiB"
            for host, has in nodes
        )
        raise UsageError(
            f"--engine ray: a cell needs {needed} on one node, and no node has that ({available}): "
            "lower --threads, --devices or --memory-limit, or add a larger node first"
        )
    return sum(rooms)


def default_workers(threads: int, devices: int, memory_limit_mib: int | None = None) -> int:
    """Default number of cells at a time: as many as the nodes of the cluster hold."""
    _connect()
    return _room(_needs(threads, devices, memory_limit_mib))


class _Remote:
    """A cell in its Ray task."""

    def __init__(self, cell: Cell, settings: Settings, reference: ObjectRef):
        self.cell, self.settings, self.reference = cell, settings, reference
        self.began, self.clock = now(), time.monotonic()
        self.verdict: tuple[Status, str] | None = None
        self.give_up_at = 0.0

    def stop(self, status: Status, message: str) -> None:
        """End the cell: its worker is killed, and the cell ends with it."""
        if self.verdict is None:
            self.verdict = status, message
            self.give_up_at = time.monotonic() + local.TERM_GRACE_S
            self.kill()

    def kill(self) -> None:
        import ray

        ray.cancel(self.reference, force=True)

    def poll(self) -> Record | None:
        """The cell's record once it has ended.

        Raises :class:`UsageError` when its node lacks something that every cell needs.
        """
        import ray
        from ray import exceptions

        if not ray.wait([self.reference], timeout=0)[0]:
            lost = self.verdict and time.monotonic() > self.give_up_at
            return self._failure(*self.verdict) if lost and self.verdict else None
        try:
            return self._received(ray.get(self.reference))
        except NodeError as error:
            raise UsageError(f"--engine ray: {error.cause}") from error  # type: ignore[attr-defined]  # what Ray raises is both
        except StoppedByNode as error:
            self._tell(error)
            return self._failure(
                "interrupted", f"stopped by its node {RETRIES + 1} times; run the same command to retry"
            )
        except exceptions.OutOfMemoryError as error:
            self._tell(error)
            return self._failure(*(self.verdict or ("oom", "Ray ended it: its node has no memory left")))
        except exceptions.RayTaskError as error:
            if isinstance(error.cause, ImportError) or "failed to import" in str(error.cause):
                raise UsageError(
                    f"--engine ray: a node cannot load archbench ({error.cause}); install it on every node"
                ) from error
            self._tell(error)
            return self._failure("failed", f"{type(error.cause).__name__}: {error.cause}")
        except exceptions.RayError as error:
            self._tell(error)
            message = f"lost {RETRIES + 1} times with its Ray worker or node; run the same command to retry"
            return self._failure(*(self.verdict or ("interrupted", message)))

    def _tell(self, error: Exception) -> None:
        """Show Ray's own words. They name hosts and addresses, and records, which are shared, hold
        none."""
        cell = self.cell
        print(f"{cell.words}: {error}", file=sys.stderr)

    def _received(self, returned: Returned) -> Record:
        """Write the returned files into the results folder, the record last: where a record is, the
        other files are too."""
        store, log = Store(self.settings.results), self.settings.log(self.cell)
        record = Record.from_json(returned.record)
        if record.error is not None:
            record.error = record.error | {"log": log_name(self.cell, self.settings)}
        try:
            write_whole(log, returned.log)
            for suffix, content in returned.files.items():
                write_whole(store.path(self.cell).with_suffix(suffix), content)
        except OSError as error:
            warnings.warn(f"record not written: {error}", stacklevel=2)
            return record
        if returned.model:
            self._keep(returned.model)
        return write_or_warn(record, store)

    def _keep(self, model: dict[str, bytes]) -> None:
        """Write the files of a kept model. A full disk leaves its record."""
        try:
            storage.write_files(self.settings.results, self.cell.key, model)
        except OSError as error:
            warnings.warn(f"model not kept: {error}", stacklevel=2)

    def _failure(self, status: Status, message: str) -> Record:
        seconds = {"total": round(time.monotonic() - self.clock, 3)}
        type = status if self.verdict else "engine"
        fields = {"started": self.began, "seconds": seconds}
        record = failure_record(self.cell, self.settings, status, type, message, **fields)
        return write_or_warn(record, Store(self.settings.results))


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
    """Run every cell as a Ray task, ``workers`` at a time, and return their records.

    Arguments and Ctrl-C are as in :func:`harness.running.engines.local.run`. Raises
    :class:`UsageError` when no node has room for a cell, or when a node lacks a file that the cells
    need.
    """
    global _connected
    _connect()
    import ray

    needs = _needs(settings.threads, cells[0].devices if cells else 1, settings.memory_limit_mib)
    _room(needs)
    # A full disk or the end of a node does not concern other nodes. Other exceptions are faults of
    # this program and would occur again.
    options: dict[str, Any] = {
        "num_cpus": needs["CPU"],
        "num_gpus": needs["GPU"],
        "memory": needs["memory"],
        "max_retries": RETRIES,
        "retry_exceptions": [OSError, StoppedByNode],
        "scheduling_strategy": "SPREAD",
    }
    task = ray.remote(run_here)

    def place(cell: Cell, _slot: int) -> _Remote:
        parents = {key: storage.files_of(settings.results, key) for key in storage.ancestors(settings.results, cell)}
        return _Remote(
            cell, settings, task.options(name=cell.words, **options).remote(cell, settings, function, parents)
        )

    def pause(running: Iterable[_Remote]) -> None:
        if references := [one.reference for one in running]:
            ray.wait(references, timeout=local.POLL_S)
        else:
            time.sleep(local.POLL_S)

    try:
        return carry_out(cells, settings, workers, place, pause, started, ended, afterwards)
    finally:
        if _connected:
            ray.shutdown()
            _connected = False
