"""Where a record was made: stored, never part of a cell's key."""

from __future__ import annotations

import functools
import importlib.metadata
import os
import platform
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

_PASSWORD = re.compile(r"(://[^:/@\s]*:)[^@\s]*@")


_ROOT = Path(__file__).resolve().parents[2]


_PACKAGES = ("torch", "pytorch-lightning", "datasets", "evaluate", "mlflow", "numpy")


def without_passwords(text: str) -> str:
    """A text in which the passwords of addresses (``scheme://user:password@host``) are stars:
    records are made public."""
    return _PASSWORD.sub(r"\1***@", text)


def now() -> str:
    """This moment in UTC, ISO 8601 to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def environment() -> dict[str, Any]:
    """The machine (cores this process may use, memory in GiB), Python, versions of what computes,
    threads, and device."""
    machine = dict(_machine())
    torch = sys.modules.get("torch")  # asked only where it runs anyway: a record can be made without importing it
    machine["threads"] = (
        torch.get_num_threads() if torch else int(os.environ.get("OMP_NUM_THREADS") or machine["cores"])
    )
    machine["device"] = torch.cuda.get_device_name() if torch and torch.cuda.is_available() else "cpu"
    return machine


@functools.cache
def _machine() -> dict[str, Any]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu": _cpu(),
        "cores": cores,
        "ram_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "versions": {name: _version(name) for name in _PACKAGES},
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


@functools.cache
def commit() -> tuple[str, bool]:
    """Commit of this code and whether files other than results differ from it; ``("", False)`` when
    it is not a checkout."""
    try:
        # The installed package may lie inside somebody else's repository (a .venv): that commit
        # says nothing about this code.
        if Path(_git("rev-parse", "--show-toplevel")).resolve() != _ROOT:
            return "", False
        return _git("rev-parse", "--verify", "HEAD"), bool(
            _git("status", "--porcelain", "--", ".", ":(exclude)results")
        )
    except (OSError, subprocess.CalledProcessError):
        return "", False


def _git(*arguments: str) -> str:
    return subprocess.run(["git", "-C", _ROOT, *arguments], check=True, capture_output=True, text=True).stdout.strip()
