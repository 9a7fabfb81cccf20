"""What a run needs, looked at without starting one (``archbench doctor``)."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from harness import registry
from harness.errors import DataError, RecordError, RegistryError
from harness.records import Store
from harness.registry import Entry
from harness.task import Split

PACKAGES = ("torch", "pytorch-lightning", "datasets", "evaluate", "mlflow", "scikit-learn", "numpy", "pandas")
SPLITS: tuple[Split, ...] = ("train", "dev", "test")
FREE_GIB = 2


class Finding(NamedTuple):
    """One thing looked at: what, whether it is well, and what was found."""

    what: str
    well: bool
    found: str


def examine(results: Path, data_dir: Path | None) -> Iterator[Finding]:
    """Look at everything in turn. Without ``data_dir`` the data files are left out: the mini tier
    needs none."""
    yield Finding("Python", sys.version_info >= (3, 11), platform.python_version())
    for package in PACKAGES:
        yield _version(package)
    yield _clash()
    yield from _machine()
    yield _results(results)
    yield from _plugins()
    if data_dir is None:
        yield Finding("data", True, "no --data-dir (or ARCHBENCH_DATA): tier mini only")
    else:
        yield from _data(data_dir)


def _version(package: str) -> Finding:
    try:
        return Finding(package, True, importlib.metadata.version(package))
    except importlib.metadata.PackageNotFoundError:
        return Finding(package, False, "not installed: pip install -c constraints.txt -e .")


def _clash() -> Finding:
    """``lightning`` beside ``pytorch_lightning`` has the same classes twice, which refuse each
    other."""
    both = any(d.metadata["Name"] == "lightning" for d in importlib.metadata.distributions())
    return Finding(
        "lightning",
        not both,
        "installed beside pytorch-lightning: pip uninstall lightning" if both else "only pytorch-lightning",
    )


def _machine() -> Iterator[Finding]:
    from harness.running.engines.local import MALLOC, default_workers, gpus

    cores = len(os.sched_getaffinity(0))
    yield Finding(
        "threads",
        True,
        f"{cores} cores: {default_workers(1, 1)} cells at a time with one thread each, unless told otherwise",
    )
    other = {name: os.environ[name] for name, value in MALLOC.items() if os.environ.get(name, value) != value}
    glibc = platform.libc_ver()[0] == "glibc"
    found = (
        "cells run with " + " ".join(f"{name}={value}" for name, value in MALLOC.items())
        if glibc
        else "not glibc: nothing to set"
    )
    yield Finding("malloc", True, found + (f" (instead of {other} here)" if other else ""))
    names = gpus()
    yield Finding("GPU", True, f"{len(names)}: {', '.join(names)}" if names else "none: cells run on the CPU")
    if names:
        yield _cuda()


def _cuda() -> Finding:
    """Whether torch can use the GPUs that the driver names."""
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
    """Every plugin file is imported, since a listing alone reads only its text."""
    for sort in ("architectures", "tasks"):
        try:
            found = registry.entries(sort)
        except RegistryError as error:
            yield Finding(sort, False, str(error))
            continue
        for entry in {entry.file: entry for entry in found.values()}.values():
            try:
                registry.load(entry)
            except RegistryError:
                continue  # named in broken()
        errors = registry.broken(sort)
        yield Finding(sort, bool(found), f"{len(found)} registered, {len(errors)} files broken")
        for file, error in errors.items():
            yield Finding(sort, False, error if str(file) in error else f"{file}: {error}")


def _data(folder: Path) -> Iterator[Finding]:
    """The first row of every split that a task reads from its files."""
    if not folder.is_dir():
        yield Finding("data", False, f"--data-dir {folder}: no such folder")
        return
    for entry in registry.entries("tasks").values():
        try:
            found = [_first(entry, folder, split) for split in SPLITS]
        except RegistryError:
            continue  # named above
        wrong = [problem for problem in found if problem]
        yield Finding(f"data of {entry.id}", not wrong, "; ".join(wrong) or "train, dev and test can be read")


def _first(entry: Entry, folder: Path, split: Split) -> str | None:
    """What is wrong with a split's files, if anything."""
    try:
        next(iter(registry.load(entry)(entry).local(folder, split)))
    except NotImplementedError:
        return None  # a task without tier local
    except StopIteration:
        return f"{split} has no rows"
    except (DataError, OSError, ValueError) as error:
        return str(error)
    return None
