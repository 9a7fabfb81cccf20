"""The parts of a record, as typed dictionaries: a reader writes ``record.memory["peak_rss_mib"]``
as in the JSON.

Unknown keys are refused and every number is finite. A part or a field that the record's schema
allows and that is not there was not recorded.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Required

from pydantic import AfterValidator, ConfigDict, Field, with_config
from typing_extensions import TypedDict

from harness.task import Split

UNSTABLE_ABOVE = 0.25
"""Spread above which a training speed is called unstable."""

LARGEST = 10**15
"""Bound of counts and measurements. Pages add and square them."""
LARGEST_LOSS = 10**100
"""Bound of losses, which explode, and of operations."""


PARENT = {"architecture", "task", "key", "row"}
"""Fields of a parent in a cell's hyperparameters."""

_closed = with_config(ConfigDict(extra="forbid", allow_inf_nan=False))


def _below(path: str) -> str:
    """A path that stays in the results folder: a record from elsewhere must not name this machine's
    files."""
    if path.startswith("/") or ".." in path.split("/") or "\0" in path:
        raise ValueError("the path leaves the results folder")
    return path


def _moment(text: str) -> str:
    """A time that clocks show; MLflow counts in milliseconds from 1970."""
    if text and not 1970 <= datetime.fromisoformat(text).year < 9999:
        raise ValueError(f"{text} is not between 1970 and 9998")
    return text


def _harness_parts(hyperparameters: dict[str, Any]) -> dict[str, Any]:
    """Hyperparameters whose parts ``limits``, ``training``, ``parents`` and ``inputs``, where they
    have them, are mappings, and whose ``companions`` are names."""
    for part in ("limits", "training", "parents", "inputs"):
        if not isinstance(hyperparameters.get(part, {}), dict):
            raise ValueError(f"{part} is {type(hyperparameters[part]).__name__}, expected a mapping")
    companions = hyperparameters.get("companions", [])
    if not isinstance(companions, list) or not all(isinstance(name, str) for name in companions):
        raise ValueError("companions: expected a list of the names of tasks")
    limits = hyperparameters.get("limits", {})
    if not isinstance(limits.get("budget", ""), str):
        raise ValueError(f"limits.budget is {type(limits['budget']).__name__}, expected a name")
    for role, parent in hyperparameters.get("parents", {}).items():
        if not isinstance(parent, dict) or {*parent} != PARENT or not all(isinstance(t, str) for t in parent.values()):
            raise ValueError(f"parents.{role}: expected the texts {', '.join(sorted(PARENT))}")
    for name, source in hyperparameters.get("inputs", {}).items():
        if not isinstance(source, dict) or not isinstance(source.get("version"), int):
            raise ValueError(f"inputs.{name}: expected a mapping with its version and settings")
    for name, limit in limits.items():
        if name != "budget" and limit is not None and not (isinstance(limit, int) and abs(limit) <= LARGEST):
            raise ValueError(f"limits.{name} is {type(limit).__name__}, expected null or a number up to {LARGEST:g}")
    return hyperparameters


Hyperparameters = Annotated[dict[str, Any], AfterValidator(_harness_parts)]
Whole = Annotated[int, Field(ge=-LARGEST, le=LARGEST)]
Real = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]
_finite = Field(ge=-LARGEST_LOSS, le=LARGEST_LOSS)
Number = Annotated[int, _finite] | Annotated[float, _finite]  # a Field of both would be checked in Python, slowly
Count = Annotated[int, Field(ge=0, le=LARGEST)]
Amount = Annotated[int, Field(ge=0, le=LARGEST_LOSS)] | Annotated[float, Field(ge=0, le=LARGEST_LOSS)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Key = Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
Moment = Annotated[str, AfterValidator(_moment)]
Duration = Annotated[float, Field(ge=-1e9, le=1e9)]  # thirty years; a clock that jumped may have made it negative
# Command lines and messages may carry the undecodable bytes of a file name, which JSON cannot: they
# are shown escaped.
Text = Annotated[str, AfterValidator(lambda text: text.encode("utf-8", "backslashreplace").decode())]


# --- schema 1 ---


@_closed
class Speed(TypedDict, total=False):
    """Steady-state rates (per second) and latencies (ms); threads and device are in the record's
    ``environment``.

    ``train_spread``: standard deviation of the training rates of ten consecutive parts over their
    mean. ``unstable``: it is above :data:`UNSTABLE_ABOVE`, or training was too short to be divided
    into parts. ``beside``: the largest number of other archbench cells that ran on the machine at
    the same time, None where the system does not say; absent from the oldest records.
    """

    train_examples_per_second: Real | None
    train_tokens_per_second: Real | None
    train_spread: Real | None
    inference_examples_per_second: Real | None
    latency_ms_p50: Real | None
    latency_ms_p95: Real | None
    unstable: bool
    beside: Whole | None


@_closed
class Memory(TypedDict, total=False):
    """Peaks in MiB: resident memory of the cell's processes together, and memory on the GPU (None
    without one)."""

    peak_rss_mib: Real | None
    peak_gpu_mib: Real | None


@_closed
class Parameters(TypedDict, total=False):
    """Numbers of parameters, those that are held fixed too: all of them, and those in embedding
    tables."""

    total: Whole
    embedding: Whole


@_closed
class Seconds(TypedDict, total=False):
    """Wall-clock seconds: training (without the pilots that choose a learning rate), scoring on
    dev, everything else, and their sum. ``train_processor`` and ``total_processor``: processor
    seconds of the same training and of the whole cell, in all its processes, to which other work of
    the machine adds nothing."""

    train: Duration
    dev: Duration
    other: Duration
    total: Duration
    train_processor: Duration
    total_processor: Duration


@_closed
class Failure(TypedDict, total=False):
    """Reason why a cell did not end ok: exception type (or a word), message, path of the log
    relative to the results folder.

    The message names no folder of the machine and no user
    (:func:`~harness.records.provenance.portable_text`).
    """

    type: Text
    message: Text
    log: Text | None


@_closed
class Predictions(TypedDict):
    """Path of the predictions, relative to the results folder, and SHA-256 of that file."""

    path: Annotated[str, AfterValidator(_below)]
    sha256: str


@_closed
class TrainingBlock(TypedDict, total=False):
    """The fit: dev score by learning rate tried, the epoch that was kept (counted from 1), the
    number of epochs, and one row of the curve per epoch.

    A row of ``curve`` holds ``epoch``, ``seconds``, the dev scores, and any losses by name.
    ``parallel`` describes training on several devices: processes, effective batch size, and how
    batches and learning rate were divided.

    Schema 2 adds: ``objective``, the name of what was minimised; ``settings``, the resolved
    training settings (JSON); ``flops``, floating-point operations of the whole fit, forward and
    backward; ``rising``, true where the last epoch was the best; ``passes_per_epoch``, over the
    training examples, where they are several. Digests of the data are in the record's ``data``, the
    time is in its ``seconds["train"]``.
    """

    learning_rates: dict[Annotated[str, Field(coerce_numbers_to_str=True)], Real | None]
    best_epoch: Whole | None
    epochs: Whole
    curve: list[dict[str, Number | None]]
    parallel: dict[str, Number | str]
    objective: str
    settings: dict[str, Any]
    flops: Amount | None
    rising: bool
    passes_per_epoch: Whole


# --- schema 2 ---


@_closed
class Registered(TypedDict, total=False):
    """The registry's words on the architecture and the task, for pages that lack their plugin.

    ``architecture``: its name, family, kind, paper and year. ``task``: its name, type,
    ``inputs`` (forms in which its texts can be read), protocol, official ``sizes`` by split,
    metrics and main metric.
    """

    architecture: dict[str, str | Whole]
    task: dict[str, str | list[str] | dict[Split, Whole]]


@_closed
class Code(TypedDict, total=False):
    """The code that made the result, which is no part of a cell's identity.

    ``architecture`` and ``task``: digests of their source files and of the plugin code that these
    import. ``harness``: number that is raised when the result of a cell changes. ``packages``:
    versions of the packages that the two came from, by name.
    """

    architecture: Digest
    task: Digest
    harness: Count
    packages: dict[str, str]


@_closed
class Spent(TypedDict, total=False):
    """Cost of all training of a cell: examples and tokens seen (each as often as it was read; of a
    system that reads texts without labels beside the others, those of the others), optimiser steps,
    floating-point operations (of all that it reads)."""

    examples: Count
    tokens: Count
    steps: Count
    flops: Amount


@_closed
class Ancestor(TypedDict, total=False):
    """An earlier cell whose result the training of this one started from.

    ``role``: use of it, such as weights, teacher, vectors or tokens. ``artefact``: digest of the
    file that was taken. ``corpus``: fingerprints of its data by split. ``examples``, ``tokens``,
    ``steps``, ``flops`` and ``seconds``: cost of its own training, without that of its ancestors.
    """

    key: Required[Key]
    role: Required[str]
    architecture: Required[str]
    task: Required[str]
    artefact: Digest
    corpus: dict[Split, Digest]
    objective: str
    examples: Count
    tokens: Count
    steps: Count
    flops: Amount
    seconds: Duration


@_closed
class Budget(TypedDict, total=False):
    """Limits of the training, by the name that the task gives them (``custom``: by the user).

    ``examples``: training examples. ``passes``: passes over them. ``min_steps``: optimiser steps
    that are made in any case. ``tokens``, ``steps``, ``flops`` and ``seconds``: limits of a
    training that does not count in passes.
    """

    name: Required[str]
    examples: Count | None
    passes: Amount | None
    min_steps: Count | None
    batch_size: Count | None
    tokens: Count | None
    steps: Count | None
    flops: Amount | None
    seconds: Amount | None


NO_VECTORS = "none"


@_closed
class Vectors(TypedDict, total=False):
    """Word vectors: file name or name of the set (:data:`NO_VECTORS` where none were given and they
    start at random), SHA-256 of the file, numbers per vector.

    ``key``: the cell that made them. ``words``: words of the vocabulary that have one. ``tuned``:
    they were trained further.
    """

    name: Required[str]
    sha256: Digest
    dims: Count
    key: Key
    words: Count
    tuned: bool


@_closed
class InputSource(TypedDict, total=False):
    """A source of word representations besides the table of vectors: its name, numbers per word,
    and the cell and digest of a kept model."""

    name: Required[str]
    dims: Count
    key: Key
    artefact: Digest


@_closed
class Companion(TypedDict, total=False):
    """A further task on which the training was: its version, the digest of its training rows (of so
    many as the limits leave), the number of those that were read and of those ``left_out``, since
    dev or test of the cell's task has their text, and the training's cost of it: examples and
    tokens read, steps.
    """

    task: Required[str]
    version: Count
    train: Digest
    rows: Count
    left_out: Count
    examples: Count
    tokens: Count
    steps: Count


@_closed
class Tokens(TypedDict, total=False):
    """The division of words into pieces: its name, the number of different pieces, and the cell and
    digest of a kept one."""

    name: Required[str]
    symbols: Count
    key: Key
    artefact: Digest


@_closed
class Overlap(TypedDict, total=False):
    """Numbers of test examples that are also in train: exactly, and nearly (a sequence of ``words``
    words in common; of a pair, in both texts)."""

    exact: Count
    near: Count
    words: Count


@_closed
class Ruler(TypedDict, total=False):
    """Speed of the machine: training examples per second of one frozen small cell, the version of
    that cell, and the moment of the measurement."""

    version: Required[Count]
    examples_per_second: Required[Amount]
    measured: Moment
