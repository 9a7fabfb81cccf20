"""The record of a cell: its fields, and how they are read from and written as JSON."""

from __future__ import annotations

import dataclasses
import json
import shlex
import sys
from datetime import datetime
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, with_config
from typing_extensions import TypedDict

from harness.errors import RecordError
from harness.files import NOT_FINITE, not_json
from harness.records.cell import Cell
from harness.records.provenance import commit, environment, now, without_passwords
from harness.task import Split, Tier

SCHEMA = 1
Status = Literal["ok", "failed", "oom", "timeout", "diverged", "skipped", "interrupted"]
STATUSES: tuple[str, ...] = get_args(Status)


UNSTABLE_ABOVE = 0.25
"""Spread above which a training speed is called unstable."""


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
                f"record {self.key} of {self.architecture} on {self.task}: {not_json(fields) or error}"
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
        suspect = NOT_FINITE.search(text.encode() if isinstance(text, str) else text)
        if suspect and (
            bad := not_json({"hyperparameters": record.hyperparameters, "environment": record.environment})
        ):
            raise RecordError(f"not a record of archbench: {bad}")
        if record.key != record.cell.key:
            raise RecordError(
                f"key: {record.key!r} is not the key of the cell that its fields describe, {record.cell.key}"
            )
        return record


# --- where a record was made: stored, never part of the key ---
