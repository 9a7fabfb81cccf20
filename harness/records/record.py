"""The record of a cell: its fields, and how they are read from and written as JSON.

There are two schemas. New records are written in schema 2, which adds to schema 1 the fields of
:data:`SINCE_2` and those of ``training`` in :data:`TRAINING_SINCE_2`. A record of schema 1 is read
with None in their place, may not have them, and stays one when it is written again, as by
``archbench rescore``: byte for byte the same where no value changed.
"""

from __future__ import annotations

import json
import sys
from typing import Any, Final, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from harness.errors import RecordError
from harness.files import not_json, parse_json
from harness.records.blocks import (
    Ancestor,
    Budget,
    Code,
    Companion,
    Count,
    Failure,
    Hyperparameters,
    InputSource,
    Memory,
    Moment,
    Number,
    Overlap,
    Parameters,
    Predictions,
    Real,
    Registered,
    Ruler,
    Seconds,
    Speed,
    Spent,
    Text,
    Tokens,
    TrainingBlock,
    Vectors,
    Whole,
)
from harness.records.cell import CELL_FIELDS, Cell, check_name
from harness.records.provenance import commit, environment, now, own_version, portable_command, portable_text
from harness.records.registered import registered, seen
from harness.task import DataName, Split, Tier

SCHEMA: Final = 2
Status = Literal["ok", "failed", "oom", "timeout", "diverged", "skipped", "interrupted"]
STATUSES: tuple[str, ...] = get_args(Status)
UNFIT: Final = "unfit"
"""Type in the error of a skipped cell whose architecture is not for such tasks."""

SINCE_2 = (
    "archbench",
    "registered",
    "code",
    "view",
    "lineage",
    "spent",
    "budget",
    "protocol_version",
    "sees",
    "vectors",
    "inputs",
    "tokens",
    "deterministic",
    "overlap",
    "ruler",
    "official_test_examples",
    "choices",
    "companions",
    "flops_batches",
)
"""Fields that came with schema 2; None where they were not recorded, and then not in the file."""

TRAINING_SINCE_2 = ("objective", "settings", "flops", "rising", "passes_per_epoch")
"""Fields of ``training`` that came with schema 2."""


class Record(BaseModel):
    """The result of one cell. Unknown keys are refused and every number is finite.

    ``archbench``: version of archbench, which an installed wheel has where there is no commit.
    ``view``: settings of the view, such as the smallest count of a word that is kept.
    ``lineage``: the cells that the training started from, with those that they started from, the
    oldest first. ``spent``: cost of the cell's own training. ``protocol_version``: version of the
    protocol's rules, part of what may be compared. ``sees``: data that training used besides the
    labelled training examples, such as the texts of test. ``data``: digests of the rows by split,
    and of the texts without labels where some rows had lost theirs. ``inputs``: sources of word
    representations besides the table of vectors. ``deterministic``: equal seeds give equal bits.
    ``official_test_examples``: scored examples that belong to the official test. ``choices``: means
    over test of what an architecture that acts chose while it answered, by name, such as the share
    of words that it read. ``companions``: further tasks on whose training rows it was trained.
    ``flops_batches``: batches of all lengths on which ``flops_per_example`` was counted; records
    without it counted one, of texts of about one length.
    """

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, validate_assignment=True, serialize_by_alias=True)

    schema_version: Literal[1, 2] = Field(SCHEMA, alias="schema")
    key: str
    status: Status
    architecture: str
    architecture_version: Whole
    task: str
    task_version: Whole
    tier: Tier
    protocol: str
    seed: Whole
    hyperparameters: Hyperparameters
    devices: Whole = 1
    precision: str = "32"
    scores: dict[Literal["dev", "test"], dict[str, Real]] = {}
    main_metric: str = ""
    counts: dict[Split, Whole] = {}
    partial: bool = False
    speed: Speed = {}
    memory: Memory = {}
    parameters: Parameters = {}
    flops_per_example: Number | None = None
    seconds: Seconds = {}
    training: TrainingBlock = {}
    environment: dict[str, Any] = {}
    data: dict[DataName, str] = {}
    commit: str = ""
    dirty: bool = False
    command: Text = ""
    started: Moment = ""
    error: Failure | None = None
    predictions: Predictions | None = None

    archbench: str | None = None
    registered: Registered | None = None
    code: Code | None = None
    view: dict[str, Any] | None = None
    lineage: list[Ancestor] | None = None
    spent: Spent | None = None
    budget: Budget | None = None
    protocol_version: Count | None = None
    sees: list[str] | None = None
    vectors: Vectors | None = None
    inputs: list[InputSource] | None = None
    tokens: Tokens | None = None
    deterministic: bool | None = None
    overlap: Overlap | None = None
    ruler: Ruler | None = None
    official_test_examples: Count | None = None
    choices: dict[str, Real] | None = None
    companions: list[Companion] | None = None
    flops_batches: Count | None = None

    @model_validator(mode="after")
    def _schema_1_is_closed(self) -> Record:
        """Refuses fields of schema 2 in a record of schema 1, whose readers would refuse the
        file."""
        if self.schema_version == 1:
            later = [name for name in SINCE_2 if getattr(self, name) is not None]
            later += [f"training.{name}" for name in TRAINING_SINCE_2 if name in self.training]
            if later:
                raise ValueError(f"{later[0]}: no field of schema 1")
        return self

    @classmethod
    def skeleton(cls, cell: Cell, status: Status, *, command: str | None = None, **fields: Any) -> Record:
        """A record of ``cell`` with what can be said before it runs; ``fields`` are further fields
        of the record.

        Command and error message are stored without paths of the machine, its user and passwords.
        """
        origin: dict[str, Any] = {"started": now(), "environment": environment(), "archbench": own_version()}
        origin["registered"], origin["sees"] = registered(cell), seen(cell)
        origin["budget"], origin["protocol_version"] = cell.budget, cell.protocol_version
        origin["commit"], origin["dirty"] = commit()
        origin["command"] = portable_command(sys.argv) if command is None else portable_text(command)
        if (error := fields.get("error")) and "message" in error:
            fields["error"] = error | {"message": portable_text(error["message"])}
        return cls(**cell.to_dict() | origin | fields, key=cell.key, status=status)

    @property
    def unfit(self) -> bool:
        """True for a cell that was skipped because its architecture is not for such tasks."""
        return self.status == "skipped" and (self.error or {}).get("type") == UNFIT

    @property
    def passes(self) -> int | None:
        """Passes over the training examples; None for what is not trained in passes."""
        epochs = self.training.get("epochs")
        return None if epochs is None else epochs * self.training.get("passes_per_epoch", 1)

    @property
    def cell(self) -> Cell:
        """The cell that this is the record of."""
        fields = {name: getattr(self, name) for name in CELL_FIELDS}
        return Cell(**fields | {"protocol_version": self.protocol_version or 1})

    def to_json(self) -> str:
        """Canonical text (indent 1, sorted keys, trailing newline); :class:`RecordError` names a
        field that JSON cannot hold."""
        fields = self.model_dump(warnings=False)
        fields = {name: value for name, value in fields.items() if value is not None or name not in SINCE_2}
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
        for name in (record.task, record.architecture):
            check_name(name)
        try:
            parse_json(text.encode() if isinstance(text, str) else text)
        except ValueError as error:  # a key that stands twice
            raise RecordError(f"not a record of archbench: {error}") from error
        free = {  # objects that are not typed
            "hyperparameters": record.hyperparameters,
            "view": record.view or {},
            "environment": record.environment,
            "training.settings": record.training.get("settings", {}),
        }
        if bad := not_json(free):
            raise RecordError(f"not a record of archbench: {bad}")
        if record.key != record.cell.key:
            raise RecordError(
                f"key: {record.key!r} is not the key of the cell that its fields describe, {record.cell.key}"
            )
        return record
