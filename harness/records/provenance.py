"""Place and program of a record: stored with it, never part of a cell's key.

Records are shared. :func:`portable_command` and :func:`portable_text` take out of a command line or
a message what names the machine or its user: absolute paths, the user name and passwords.
"""

from __future__ import annotations

import functools
import getpass
import importlib.metadata
import os
import platform
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.registry.sorts import ROOT as _ROOT

_PACKAGES = ("torch", "pytorch-lightning", "datasets", "evaluate", "mlflow", "numpy", "numba")


# A password reaches to the last @ before the path, as it may hold that sign. SQLAlchemy also reads
# one with an unescaped slash (the second form) or a blank (the third).
_PASSWORD = re.compile(r"(://[^:/?#@\s]*:)(?:[^/?#\s'\"]*@|[^@\s]*@|[^@\n'\"]*@(?=[\w.\[-]+[:/]))")
_TOKEN = re.compile(r"(\bhttps?://)[^/?#\s'\"@:]+@")  # a user without a password
_ENCODED = re.compile(r"(%3A%2F%2F)[^\s'\"]*%40", re.IGNORECASE)
# The value of a parameter may hold blanks, so that all of the line goes. A name with an encoded
# letter wants to hide.
_SECRET_PARAMETER = re.compile(
    r"([?&;](?:[\w.-]{0,40}(?:pass|pwd|token|secret|key|auth|sig|cred)[\w.-]{0,40}|[\w.-]{0,40}%[\w.%-]{2,80})=)[^&'\"\n]*",
    re.IGNORECASE,
)
_SECRET_WORD = re.compile(r"(\b(?:password|passwd)\s*=\s*)(?:'[^'\n]*'|\"[^\"\n]*\"|[^\s&;'\"]+)", re.IGNORECASE)
_USER_INFO = re.compile(r"(://)[^/?#\s'\"]*@")

# An absolute path of two components or more, where one can begin: not inside a relative path or an
# address. That of sqlite:////folder/file begins at the fourth slash.
_PATH_START = r"(?:(?<![^\s'\"`=:,;(\[{<>|@!])|(?<=:///)|(?<=file://))"
_QUOTED_PATH = re.compile(r"(?<=(['\"]))/(?!/)[^'\"\n]*/[^'\"\n]*(?=\1)")
_PATH = re.compile(_PATH_START + r"/(?!/)[^\s'\"`<>|:;,()\[\]{}]*/[^\s'\"`<>|:;,()\[\]{}]*")


def without_passwords(text: str) -> str:
    """A text with stars for the passwords of addresses: ``scheme://user:password@host``, and
    parameters such as ``?password=`` and ``&token=``."""
    text = _SECRET_WORD.sub(r"\1***", _SECRET_PARAMETER.sub(r"\1***", text))
    text = _TOKEN.sub(r"\1***@", _PASSWORD.sub(r"\1***@", text))
    return _ENCODED.sub(r"\1***%40", text)


def portable_command(arguments: Sequence[str], data_dir: Path | None = None, cwd: Path | None = None) -> str:
    """A command line to be shared, quoted for a shell.

    Paths below ``cwd`` (the working directory by default) become relative to it, those below
    ``data_dir`` begin with ``$ARCHBENCH_DATA``, and of any other absolute path the last component
    stays. The value of ``--mlflow`` is left out (``URI``), since it may hold a password in more
    forms than can be known; ``none`` stays.
    """
    places = _by_length({data_dir: "$ARCHBENCH_DATA", cwd or Path.cwd(): "."})

    def portable(option: str, value: str) -> str:
        if option == "--mlflow" and value != "none":
            return "URI"
        if option == "--data-dir" and data_dir is not None:
            return "$ARCHBENCH_DATA"
        return _portable_argument(value, places)

    words: list[str] = []
    option = ""
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if equals and name.startswith("--"):
            words.append(f"{name}={portable(name, value)}")
        else:
            words.append(portable(option, argument))
        option = argument if argument.startswith("-") else ""
    return " ".join(map(_quoted, words))


def portable_text(text: str, results: Path | None = None, data_dir: Path | None = None) -> str:
    """A message or the end of a log to be shared.

    Known folders get names: ``$RESULTS``, ``$ARCHBENCH_DATA``, ``$ARCHBENCH`` (where archbench is
    installed), ``$TMPDIR`` and ``~``. Of any other absolute path the last component stays. The
    user's name becomes ``$USER`` where it belongs to a path or an address; users and passwords in
    addresses become stars.
    """
    folders = {
        results: "$RESULTS",
        data_dir: "$ARCHBENCH_DATA",
        _ROOT: "$ARCHBENCH",
        Path(tempfile.gettempdir()): "$TMPDIR",
        Path(os.path.expanduser("~")): "~",
    }
    return _without_names(text, _by_length(folders))


def _by_length(folders: Mapping[Path | None, str]) -> dict[str, str]:
    """Names by absolute folder, the longest folder first; the root of the file system has none."""
    names = {
        str(path): name
        for folder, name in folders.items()
        if folder is not None
        for path in (folder, folder.resolve())
        if path.is_absolute() and path != Path(path.anchor)
    }
    return dict(sorted(names.items(), key=lambda item: -len(item[0])))


def _portable_argument(argument: str, places: Mapping[str, str]) -> str:
    """One argument; the whole of it, or all after its first ``=``, may be a path with blanks."""
    head, path = re.fullmatch(r"((?:[^/=]*=)?)(.*)", argument, re.DOTALL).groups()  # type: ignore[union-attr]
    if not path.startswith("/") or ":" in path or "," in path:
        return _without_names(argument, places)
    return head + _without_user(_portable_path(path, places))


def _portable_path(path: str, places: Mapping[str, str]) -> str:
    path = os.path.normpath(path)
    for folder, name in places.items():
        if path == folder or path.startswith(folder + os.sep):
            return os.path.normpath(name + path[len(folder) :])
    return os.path.basename(path)


def _without_names(text: str, places: Mapping[str, str]) -> str:
    """A text without passwords, folders of the machine and its user."""
    text = _USER_INFO.sub(r"\1***@", without_passwords(text))
    for folder, name in places.items():  # first, since a known folder may have blanks in its name
        if name == ".":
            text = re.sub(_PATH_START + re.escape(folder + os.sep), "", text)
        text = re.sub(_PATH_START + re.escape(folder) + r"(?![\w.-])", name.replace("\\", r"\\"), text)
    text = _QUOTED_PATH.sub(lambda match: os.path.basename(match[0].rstrip("/")), text)
    return _without_user(_PATH.sub(lambda match: os.path.basename(match[0].rstrip("/")), text))


def _without_user(text: str) -> str:
    """``$USER`` for the user's name in a path or an address, or after the word user: elsewhere it
    may be a word of the message."""
    try:
        name = re.escape(getpass.getuser())
    except (KeyError, OSError, ImportError):  # a container without an entry for its user
        return text
    place = rf"((?<=[/~])(?:pytest-of-)?|\buser(?:name)?[ =:]+['\"]?){name}(?!\w)"
    return re.sub(rf"(?<!\w){name}(?=@)", "$USER", re.sub(place, r"\1$USER", text, flags=re.IGNORECASE))


def _quoted(argument: str) -> str:
    """An argument for a shell, which is to read ``$ARCHBENCH_DATA`` as a variable."""
    parts = argument.split("$ARCHBENCH_DATA")
    return "$ARCHBENCH_DATA".join(shlex.quote(part) if part or len(parts) == 1 else "" for part in parts)


def now() -> str:
    """This moment in UTC, ISO 8601 to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def environment() -> dict[str, Any]:
    """The machine (cores this process may use, memory in GiB), Python, versions of what computes,
    threads, and device; neither the name of the machine nor that of its user."""
    machine = dict(_machine())
    torch = sys.modules.get("torch")  # asked only where it runs anyway: a record can be made without importing it
    of_openmp = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]  # the others are those of nested loops
    machine["threads"] = torch.get_num_threads() if torch else int(of_openmp or machine["cores"])
    machine["device"] = torch.cuda.get_device_name() if torch and torch.cuda.is_available() else "cpu"
    return machine


def usable_cores() -> int:
    """Number of cores that this process may use; all there are where the system does not tell."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@functools.cache
def _machine() -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu": _cpu(),
        "cores": usable_cores(),
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
def own_version() -> str | None:
    """Version of archbench as it is installed, which a wheel has and a commit not; None for code
    that is not installed."""
    return _version("archbench")


@functools.cache
def commit() -> tuple[str, bool]:
    """Commit of this code, and true where files other than results differ from it; ``("", False)``
    outside a checkout."""
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
    # No lock: a process killed meanwhile would leave it in the user's repository.
    command = ["git", "--no-optional-locks", "-C", str(_ROOT), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
