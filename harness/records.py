"""What a cell is and what it left behind: one JSON record per cell, the truth that every table and
view is rebuilt from.

A store is a results folder: ``records/<task>/<architecture>/<key>.json`` with
``<key>.predictions.json.xz`` beside it. Two machines merge by copying files.
"""

from __future__ import annotations

import dataclasses
import errno
import functools
import gzip
import hashlib
import importlib.metadata
import json
import lzma
import math
import os
import platform
import re
import shlex
import socket
import stat
import subprocess
import sys
import uuid
import warnings
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import psutil
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, with_config
from typing_extensions import TypedDict

from harness.outcomes import Outcomes
from harness.task import Split, Tier

SCHEMA = 1
Status = Literal["ok", "failed", "oom", "timeout", "diverged", "skipped", "interrupted"]
STATUSES: tuple[str, ...] = get_args(Status)

_PASSWORD = re.compile(r"(://[^:/@\s]*:)[^@\s]*@")
LARGEST_RECORD, LARGEST_PART = 1 << 26, 1 << 27
"""Bytes that a record may have, and its predictions or outcomes unpacked: what is larger, nobody's
grid has written."""

_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_NOT_FINITE = re.compile(
    rb"NaN|Infinity|\d[eE]\+?\d{3}"
)  # how JSON text may write a number that is none; 1e999 is infinite too
_ROOT = Path(__file__).resolve().parent.parent
_PACKAGES = ("torch", "pytorch-lightning", "datasets", "evaluate", "mlflow", "numpy")


UNSTABLE_ABOVE = 0.25
"""Spread above which a training speed is called unstable."""


class RecordError(Exception):
    """A record that cannot be read, written or trusted; the message names the file and what is
    wrong with it."""


@dataclass(frozen=True)
class Cell:
    """One square of the grid: everything that decides a result, and nothing about where it was
    computed."""

    architecture: str
    architecture_version: int
    task: str
    task_version: int
    tier: Tier
    protocol: str
    hyperparameters: dict[str, Any] = field(hash=False)
    seed: int
    precision: str = "32"
    devices: int = 1

    @property
    def key(self) -> str:
        """Identity of the cell: the first 16 hexadecimal digits of SHA-256 over its canonical
        JSON."""
        try:
            text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"), allow_nan=False)
        except (ValueError, TypeError) as error:
            raise RecordError(
                f"cell {self.architecture} on {self.task}: {_not_json(self.to_dict()) or error}"
            ) from error
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def to_dict(self) -> dict[str, Any]:
        """The fields by name."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Cell:
        """A cell from :meth:`to_dict`; :class:`TypeError` when a field is missing or unknown."""
        return cls(**fields)


# The parts of a record are typed dictionaries, so that a reader writes
# record.memory["peak_rss_mib"] as in the JSON.
_closed = with_config(ConfigDict(extra="forbid", allow_inf_nan=False))
Number = int | float
Duration = Annotated[float, Field(ge=-1e9, le=1e9)]  # thirty years; a clock that jumped may have made it negative
# Command lines and messages may carry the undecodable bytes of a file name, which JSON cannot: they
# are shown escaped.
Text = Annotated[str, AfterValidator(lambda text: text.encode("utf-8", "backslashreplace").decode())]


@_closed
class Speed(TypedDict, total=False):
    """Steady-state rates (per second) and latencies (ms); threads and device are in the record's
    ``environment``.

    ``train_spread`` is the standard deviation of the training rates of ten consecutive parts over
    their mean. ``unstable``: that is above :data:`UNSTABLE_ABOVE`, or training was too short to be
    parted. ``beside``: the most other cells of archbench that ran on the machine at a time while
    this one did; None where the system does not tell. Records of before this was looked at lack the
    field.
    """

    train_examples_per_second: float | None
    train_tokens_per_second: float | None
    train_spread: float | None
    inference_examples_per_second: float | None
    latency_ms_p50: float | None
    latency_ms_p95: float | None
    unstable: bool
    beside: int | None


@_closed
class Memory(TypedDict, total=False):
    """Peaks in MiB: resident memory of the cell's process and all that it started, together; memory
    on the GPU (None without one)."""

    peak_rss_mib: float | None
    peak_gpu_mib: float | None


@_closed
class Parameters(TypedDict, total=False):
    """Trainable numbers: all of them, and those in embedding tables."""

    total: int
    embedding: int


@_closed
class Seconds(TypedDict, total=False):
    """The three clocks and their sum."""

    train: Duration
    dev: Duration
    other: Duration
    total: Duration


@_closed
class Failure(TypedDict, total=False):
    """Why a cell did not end ok: exception type (or reason), message, path of the log (absolute, or
    relative to the results folder)."""

    type: Text
    message: Text
    log: Text | None


def _below(path: str) -> str:
    """A path that stays in the results folder: a record from elsewhere must not name this machine's
    files."""
    if path.startswith("/") or ".." in path.split("/"):
        raise ValueError("the path leaves the results folder")
    return path


def _moment(text: str) -> str:
    """A time that clocks show; MLflow counts in milliseconds from 1970."""
    if text and not 1970 <= datetime.fromisoformat(text).year < 9999:
        raise ValueError(f"{text} is not between 1970 and 9998")
    return text


@_closed
class Predictions(TypedDict):
    """Where the predictions are, relative to the results folder, and the SHA-256 of that file."""

    path: Annotated[str, AfterValidator(_below)]
    sha256: str


@_closed
class Training(TypedDict, total=False):
    """Dev score by learning rate tried, the epoch that was kept (counted from 1), epochs run, and
    one row of the curve per epoch.

    ``parallel`` is there for several devices: processes, effective batch size, and how batches and
    learning rate were dealt with.
    """

    learning_rates: dict[Annotated[str, Field(coerce_numbers_to_str=True)], float | None]
    best_epoch: int | None
    epochs: int
    curve: list[dict[str, Number | None]]
    parallel: dict[str, Number | str]


class Record(BaseModel):
    """What one cell left behind. Unknown keys are rejected and every number is finite."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, validate_assignment=True, serialize_by_alias=True)

    schema_version: Literal[1] = Field(SCHEMA, alias="schema")
    key: str
    status: Status
    architecture: str
    architecture_version: int
    task: str
    task_version: int
    tier: Tier
    protocol: str
    seed: int
    hyperparameters: dict[str, Any]
    devices: int = 1
    precision: str = "32"
    scores: dict[Literal["dev", "test"], dict[str, float]] = {}
    main_metric: str = ""
    counts: dict[Split, int] = {}
    partial: bool = False
    speed: Speed = {}
    memory: Memory = {}
    parameters: Parameters = {}
    flops_per_example: Number | None = None
    seconds: Seconds = {}
    training: Training = {}
    environment: dict[str, Any] = {}
    data: dict[Split, str] = {}
    commit: str = ""
    dirty: bool = False
    command: Text = ""
    started: Annotated[str, AfterValidator(_moment)] = ""
    error: Failure | None = None
    predictions: Predictions | None = None

    @classmethod
    def skeleton(cls, cell: Cell, status: Status, *, command: str | None = None, **fields: Any) -> Record:
        """A record of ``cell`` with what is known before it runs; ``fields`` are further fields of
        the record."""
        known: dict[str, Any] = {"started": now(), "environment": environment()}
        known["commit"], known["dirty"] = commit()
        known["command"] = without_passwords(shlex.join(sys.argv) if command is None else command)
        return cls(**cell.to_dict() | known | fields, key=cell.key, status=status)

    @property
    def cell(self) -> Cell:
        """The cell that this is the record of."""
        return Cell(**{f.name: getattr(self, f.name) for f in dataclasses.fields(Cell)})

    def to_json(self) -> str:
        """Canonical text (indent 1, sorted keys, trailing newline); :class:`RecordError` names a
        field that JSON cannot hold."""
        fields = self.model_dump(warnings=False)
        try:
            return json.dumps(fields, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"
        except (ValueError, TypeError) as error:
            raise RecordError(
                f"record {self.key} of {self.architecture} on {self.task}: {_not_json(fields) or error}"
            ) from error

    @classmethod
    def from_json(cls, text: str | bytes) -> Record:
        """The record in ``text``; :class:`RecordError` says which field is wrong, unknown, missing
        or not finite."""
        try:
            record = cls.model_validate_json(text)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise RecordError(
                f"not a record of archbench: {where[:200] + ': ' if where else ''}{first['msg'][:500]}"
            ) from error
        # Free-form objects (hyperparameters, environment) are not typed; look closer only where the
        # text may hold such a number.
        suspect = _NOT_FINITE.search(text.encode() if isinstance(text, str) else text)
        if suspect and (
            bad := _not_json({"hyperparameters": record.hyperparameters, "environment": record.environment})
        ):
            raise RecordError(f"not a record of archbench: {bad}")
        if record.key != record.cell.key:
            raise RecordError(
                f"key: {record.key!r} is not the key of the cell that its fields describe, {record.cell.key}"
            )
        return record


def _not_json(value: Any, where: str = "") -> str | None:
    """Says which field below ``value`` is not a finite number or not JSON at all; None when all are
    fine."""
    if isinstance(value, dict):
        return next(filter(None, (_not_json(v, f"{where}.{k}" if where else str(k)) for k, v in value.items())), None)
    if isinstance(value, list | tuple):
        return next(filter(None, (_not_json(v, f"{where}.{i}") for i, v in enumerate(value))), None)
    if isinstance(value, float) and not math.isfinite(value):
        return f"{where}: {value} is not a finite number"
    if value is None or isinstance(value, str | int | float):
        return None
    return f"{where}: a {type(value).__name__} cannot be written as JSON"


class Store:
    """The records below one results folder."""

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        self.damaged: dict[Path, str] = {}  # what the last all() could not read, and why

    def path(self, of: Cell | Record) -> Path:
        """Where the record of a cell is or would be."""
        for name in (of.task, of.architecture):
            if not _NAME.fullmatch(name) or not name.strip("."):
                raise RecordError(f"{name!r} cannot be the name of a folder: use letters, digits, '_', '-' and '.'")
        return self.folder / "records" / of.task / of.architecture / f"{of.key}.json"

    def check_writable(self) -> None:
        """Raise :class:`RecordError` unless a record could be written; to be asked before anything
        is computed."""
        folder = self.folder / "records"
        probe = folder / f".{uuid.uuid4().hex}.tmp"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            probe.touch()
            probe.unlink()
        except OSError as error:
            reason = error.strerror or error
            raise RecordError(
                f"results folder {self.folder} is not writable ({reason}): give another one with --results"
            ) from error

    def sweep(self) -> None:
        """Remove the half-written files that killed processes of this machine left; those of living
        ones and of other machines stay."""
        for path in (self.folder / "records").rglob(".*.tmp"):
            owner = re.fullmatch(r".*\.(.*)~(\d+)~\w+\.tmp", path.name.replace(socket.gethostname(), "here"))
            if owner and owner[1] == "here" and not psutil.pid_exists(int(owner[2])):
                path.unlink(missing_ok=True)

    def write(self, record: Record) -> Path:
        """Write a record so that its file is at all times the old one or the new one; a damaged
        file there is never replaced."""
        path = self.path(record)
        text = record.to_json()
        try:
            Record.from_json(text)
        except RecordError as error:
            raise RecordError(f"{path} was not written: {error}") from error
        if os.path.lexists(path):
            self.read(path)
        _replace(path, text.encode())
        return path

    def set_aside(self, record: Record) -> Path:
        """Rename a record and its files so that its cell counts as not run; returns the record's
        new path, which no reader looks at."""
        mark = record.data.get("test", "unknown")[:8]
        path = self.path(record)
        for file in (self._predictions_path(record), self._outcomes_path(record), path):
            if file.exists():
                os.replace(
                    file, aside := file.with_name(f"{record.key}.{mark}{file.name.removeprefix(record.key)}.old")
                )
        return aside

    def read(self, path: str | Path) -> Record:
        """The record in one file; :class:`RecordError` names the file when it is damaged or does
        not belong where it is."""
        path = Path(path)
        try:
            record = Record.from_json(_content(path))
        except OSError as error:
            raise RecordError(f"{path}: {error.strerror}") from error
        except RecordError as error:
            raise RecordError(f"{path}: {error}") from error
        if path.parts[-3:] != (record.task, record.architecture, f"{record.key}.json"):
            raise RecordError(f"{path}: this record belongs in {self.path(record)}")
        return record

    def all(self) -> Iterator[Record]:
        """Every sound record, by path; the others are warned about, kept in :attr:`damaged`, and
        left as they are."""
        self.damaged = {}
        found = (
            Path(folder, name)
            for folder, dirs, names in os.walk(self.folder / "records")
            for name in dirs + names
            if name.endswith(".json")
        )
        for path in sorted(found):
            try:
                yield self.read(path)
            except RecordError as error:
                reason = str(error).encode("utf-8", "backslashreplace").decode()  # a file's name may be no UTF-8
                self.damaged[path] = reason
                warnings.warn(f"record skipped: {reason}", stacklevel=2)

    def find(self, cell: Cell) -> Record | None:
        """The record of ``cell``, if there is one; :class:`RecordError` when the file in its place
        is damaged."""
        path = self.path(cell)
        return self.read(path) if os.path.lexists(path) else None

    def save_predictions(self, of: Cell | Record, ids: Sequence[str], predictions: Sequence[Any]) -> Predictions:
        """Write the predictions of a cell, one per example id, beside its record; returns the
        record's ``predictions`` field."""
        path = self._predictions_path(of)
        if len(ids) != len(predictions) or len(set(ids)) != len(ids):
            raise RecordError(
                f"{path}: {len(predictions)} predictions for {len(ids)} ids, {len(set(ids))} of them different"
            )
        content = {"ids": list(ids), "predictions": list(predictions)}
        try:
            text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        except (ValueError, TypeError) as error:
            raise RecordError(f"{path}: {_not_json(content) or error}") from error
        data = lzma.compress(text.encode())
        _replace(path, data)
        return {"path": path.relative_to(self.folder).as_posix(), "sha256": hashlib.sha256(data).hexdigest()}

    def load_predictions(self, record: Record) -> tuple[list[str], list[Any]]:
        """Example ids and their predictions; :class:`RecordError` when there are none or the file
        is not the one recorded."""
        path = self._predictions_path(record)
        if record.predictions is None:
            raise RecordError(f"{self.path(record)}: the record names no predictions")
        try:
            data = _content(path)
        except OSError as error:
            raise RecordError(f"{path}: {error.strerror}; the record names it") from error
        found = hashlib.sha256(data).hexdigest()
        if found != record.predictions["sha256"]:
            raise RecordError(f"{path}: SHA-256 is {found}, the record says {record.predictions['sha256']}")
        try:
            content = _json(_unpacked(lzma.LZMADecompressor(memlimit=LARGEST_PART), data))
            ids, predictions = content["ids"], content["predictions"]
            if (
                not _texts(ids)
                or not isinstance(predictions, list)
                or len(set(ids)) != len(predictions)
                or len(ids) != len(predictions)
            ):
                raise ValueError("not one prediction for each of a list of ids")
            if bad := _not_json(predictions, "predictions"):
                raise ValueError(bad)
        except (lzma.LZMAError, EOFError, MemoryError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise RecordError(
                f"{path}: not predictions of archbench ({type(error).__name__}: {str(error)[:200]})"
            ) from error
        return ids, predictions

    def save_outcomes(
        self, of: Cell | Record, predictions: Predictions, ids: Sequence[str], outcomes: Outcomes
    ) -> Path:
        """Write beside a record how each unit came out by its predictions, which were for the
        examples ``ids``; returns the path."""
        path = self._outcomes_path(of)
        content = {"predictions": predictions["sha256"]} | outcomes.to_json(list(ids))
        try:
            text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        except (ValueError, TypeError) as error:
            raise RecordError(f"{path}: {_not_json(content) or error}") from error
        _replace(path, gzip.compress(text.encode(), mtime=0))
        return path

    def load_outcomes(self, record: Record, units: Sequence[str] | None = None) -> Outcomes | None:
        """How each unit of the record's test split came out; None when there is no such file or it
        was made from other predictions.

        ``units`` are the ids that another record of the same test data gave: with them, the
        predictions need not be read. Raises :class:`RecordError` when the file is damaged.
        """
        path = self._outcomes_path(record)
        if record.predictions is None or not path.exists():
            return None
        try:
            content = _json(_unpacked(zlib.decompressobj(wbits=31), _content(path)))
            if content["predictions"] != record.predictions["sha256"]:
                return None
            units = units or content["units"] or self.load_predictions(record)[0]
            if not _texts(units):
                raise ValueError("units is not a list of texts")
            return Outcomes.from_json(content, list(units))
        except (
            OSError,
            EOFError,
            zlib.error,
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
            OverflowError,
            RecursionError,
        ) as error:
            raise RecordError(
                f"{path}: not outcomes of archbench ({str(error)[:200]}); `archbench rescore` makes them again"
            ) from error

    def _predictions_path(self, of: Cell | Record) -> Path:
        return self.path(of).with_suffix(".predictions.json.xz")

    def _outcomes_path(self, of: Cell | Record) -> Path:
        return self.path(of).with_suffix(".outcomes.json.gz")


def _content(path: Path) -> bytes:
    """Content of a file; ``OSError`` for what cannot be read to its end (a pipe, a device), and for
    one larger than a record."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, f"{'a folder' if stat.S_ISDIR(status.st_mode) else 'a pipe or device'}, not a file")
    if status.st_size > LARGEST_RECORD:
        raise OSError(
            errno.EFBIG, f"{status.st_size:,} bytes, more than the {LARGEST_RECORD:,} that such a file may have"
        )
    return path.read_bytes()


def _unpacked(decompressor: Any, data: bytes) -> bytes:
    """One compressed stream as a whole; ``ValueError`` where it is cut off, followed by something,
    or unpacks to too much."""
    content = decompressor.decompress(data, LARGEST_PART + 1)
    if len(content) > LARGEST_PART:
        raise ValueError(f"it unpacks to more than {LARGEST_PART:,} bytes")
    if not decompressor.eof or decompressor.unused_data:
        raise ValueError("it is cut off" if not decompressor.eof else "something follows its end")
    return content


def _json(data: bytes) -> Any:
    """Value of a JSON text; ``ValueError`` also for half a surrogate pair, which JSON can spell: it
    would break who prints it."""
    value = json.loads(data)
    if re.search(rb"\\u[dD][89a-fA-F]", data):
        json.dumps(value, ensure_ascii=False).encode()
    return value


def _texts(values: Any) -> bool:
    return isinstance(values, list | tuple) and all(isinstance(value, str) for value in values)


def _replace(path: Path, data: bytes) -> None:
    """Put ``data`` in the place of ``path`` in one step."""
    temporary = path.with_name(f".{path.name}.{socket.gethostname()}~{os.getpid()}~{uuid.uuid4().hex[:8]}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise RecordError(f"{path} could not be written: {error}") from error


# --- where a record was made: stored, never part of the key ---


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
