"""Checks that this machine can run a grid (``archbench doctor``)."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from harness import registry
from harness.errors import DataError, RecordError, RegistryError
from harness.records import Store
from harness.registry import TaskEntry
from harness.task import Split, Task

PACKAGES = ("torch", "pytorch-lightning", "datasets", "evaluate", "mlflow", "scikit-learn", "numpy", "pandas")
SPLITS: tuple[Split, ...] = ("train", "dev", "test")
FREE_GIB = 2


class Finding(NamedTuple):
    """Outcome of one check."""

    subject: str
    ok: bool
    message: str


def examine(results: Path, data_dir: Path | None, tasks: str | None = None) -> Iterator[Finding]:
    """Run all checks in turn; data files are checked only with a ``data_dir``, and only those of
    the ``tasks`` where patterns name some."""
    yield Finding("Python", sys.version_info >= (3, 11), platform.python_version())
    for package in PACKAGES:
        yield _version(package)
    yield _clash()
    yield from _machine()
    yield _results(results)
    yield from _plugins()
    if tasks is not None:
        yield from _tasks(registry.match("tasks", tasks), data_dir)
    elif data_dir is None:
        yield Finding("data", True, "not checked: without --data-dir (or ARCHBENCH_DATA) only tiers mini and hub run")
    else:
        yield from _data(data_dir)


def _version(package: str) -> Finding:
    try:
        return Finding(package, True, importlib.metadata.version(package))
    except importlib.metadata.PackageNotFoundError:
        return Finding(package, False, "not installed: pip install -c constraints.txt -e .")


def _clash() -> Finding:
    """The packages ``lightning`` and ``pytorch_lightning`` together define the same classes twice,
    which refuse each other."""
    both = any(d.metadata["Name"] == "lightning" for d in importlib.metadata.distributions())
    return Finding(
        "lightning",
        not both,
        "installed next to pytorch-lightning: pip uninstall lightning" if both else "only pytorch-lightning",
    )


def _machine() -> Iterator[Finding]:
    from harness.records.provenance import usable_cores
    from harness.running.engines.local import MALLOC, default_workers, gpus

    cores = usable_cores()
    yield Finding(
        "threads",
        True,
        f"{cores} cores: by default {default_workers(1, 1)} cells at a time with one thread each",
    )
    other = {name: os.environ[name] for name, value in MALLOC.items() if os.environ.get(name, value) != value}
    glibc = platform.libc_ver()[0] == "glibc"
    message = (
        "cells run with " + " ".join(f"{name}={value}" for name, value in MALLOC.items())
        if glibc
        else "not glibc: nothing to set"
    )
    yield Finding("malloc", True, message + (f" (overriding {other})" if other else ""))
    names = gpus()
    yield Finding("GPU", True, f"{len(names)}: {', '.join(names)}" if names else "none: cells run on the CPU")
    if names:
        yield _cuda()


def _cuda() -> Finding:
    """Checks that torch can use the GPUs that the driver lists."""
    import torch

    if torch.cuda.is_available():
        return Finding("CUDA", True, f"{torch.cuda.get_device_name()}, CUDA {torch.version.cuda}")
    return Finding("CUDA", False, f"torch {torch.__version__} cannot use the GPU: install its CUDA build")


def _results(folder: Path) -> Finding:
    try:
        Store(folder).check_writable()
    except RecordError as error:
        return Finding("results", False, str(error))
    free = shutil.disk_usage(folder).free / 2**30
    return Finding("results", free >= FREE_GIB, f"{folder} is writable, {free:.0f} GiB free")


def _plugins() -> Iterator[Finding]:
    """Imports every plugin file; a listing reads only its text."""
    for sort in ("architectures", "tasks"):
        try:
            entries = registry.entries(sort)
        except RegistryError as error:
            yield Finding(sort, False, str(error))
            continue
        for entry in {entry.file: entry for entry in entries.values()}.values():
            try:
                registry.load(entry)
            except RegistryError:
                continue  # named in broken()
        errors = registry.broken(sort)
        yield Finding(sort, bool(entries), f"{len(entries)} registered, {len(errors)} files broken")
        for file, reason in errors.items():
            yield Finding(sort, False, reason if str(file) in reason else f"{file}: {reason}")


def _tasks(entries: Sequence[TaskEntry], data_dir: Path | None) -> Iterator[Finding]:
    """All that `archbench check` finds of the tasks that were asked for."""
    from harness.contract import tasks

    for entry in entries:
        results = tasks.check(entry, data_dir)
        faults = [
            Finding(f"task {entry.id}", False, f"{each.name}: {each.message}") for each in results if not each.passed
        ]
        notes = "; ".join(f"{each.name}: {each.message}" for each in results if each.message)
        yield from faults or [Finding(f"task {entry.id}", True, notes)]


def _data(folder: Path) -> Iterator[Finding]:
    """Reads every split of every task from its files."""
    if not folder.is_dir():
        yield Finding("data", False, f"--data-dir {folder}: no such folder")
        return
    for entry in registry.entries("tasks").values():
        try:
            cls = registry.load(entry)
        except RegistryError:
            continue  # named above
        if not issubclass(cls, Task):
            yield Finding(
                f"data of {entry.id}", False, f"class {cls.__name__} is no task: derive it from harness.task.Task"
            )
            continue
        found = [_split(cls(entry), folder, split) for split in SPLITS]
        faults = [message for ok, message in found if not ok]
        yield Finding(f"data of {entry.id}", not faults, "; ".join(faults or [message for _, message in found]))


def _split(task: Task, folder: Path, split: Split) -> tuple[bool, str]:
    """True and the number of rows, or False and the fault of a split's files."""
    if type(task).local is Task.local:
        return True, f"{split} has no tier local"
    try:
        return True, f"{split} {len(task.load(split, 'local', folder)):,}"
    except Exception as error:  # a task is code of its author, and may raise anything
        return False, str(error) if isinstance(error, DataError) else f"{split}: {type(error).__name__}: {error}"
