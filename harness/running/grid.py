"""Patterns to cells: the hyperparameters and the identity of each (architecture, task) pair.

Nothing here imports torch; loading an architecture's class (:func:`plan`) may.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import inspect
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from harness import registry
from harness.errors import RegistryError, UsageError, check_choice
from harness.files import LONGEST_LINE
from harness.records import Cell
from harness.registry import ArchitectureEntry, Entry, InputEntry, TaskEntry
from harness.running.fitting import (
    loaded,
    no_budget,
    no_companions,
    no_data,
    no_place_for_inputs,
    reason_to_skip,
    tier_of,
)
from harness.running.overrides import Override, parse_override, parsed, unused
from harness.running.pending import Planned
from harness.settings import FULL, Limits, TrainingSettings
from harness.task import Tier

GIVEN_BY_HARNESS = ("width", "classes", "labels", "symbols", "answers", "tree", "view", "seed", "task_type")
"""Constructor parameters that follow from the task or the cell, so they are no hyperparameters."""

HARNESS_SECTIONS = ("training", "limits", "vectors", "view", "parents", "inputs")
"""Parts of a cell's hyperparameters that the harness fills, beside the constructor arguments.
``view`` is there only where a setting of the view is not the architecture's own, ``parents`` and
``inputs`` where there are any."""


def _defaults(cls: type) -> dict[str, Any]:
    """Keyword defaults of a class, without what the harness gives it."""
    return {
        name: parameter.default
        for name, parameter in inspect.signature(cls).parameters.items()
        if name not in GIVEN_BY_HARNESS and parameter.default is not inspect.Parameter.empty
    }


def input_settings(source: InputEntry, own_dropout: bool = True) -> dict[str, Any]:
    """Version and constructor arguments of an input source by default, as a cell has them; with its
    ordinary dropouts or with 0 in their place."""
    cls = registry.load(source)
    values = {"version": source.version, **_plain(_defaults(cls), source)}
    return values if own_dropout else _without_dropouts(values, cls)


def hyperparameters(architecture: ArchitectureEntry) -> dict[str, Any]:
    """Constructor arguments of an architecture by default: the keyword defaults of its class, then
    those its decorator fixes."""
    parameters = inspect.signature(loaded(architecture)).parameters
    defaults = _defaults(loaded(architecture))
    fixed = architecture.hyperparameters
    open_ended = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    if not open_ended and (unknown := [name for name in fixed if name not in parameters]):
        raise RegistryError(
            f"{architecture.file}: @register({architecture.id!r}) fixes {', '.join(unknown)}, "
            f"which {architecture.class_name} does not take (it takes {', '.join(parameters) or 'nothing'})"
        )
    if taken := [name for name in HARNESS_SECTIONS if name in parameters and name not in GIVEN_BY_HARNESS]:
        raise RegistryError(
            f"{architecture.file}: {architecture.class_name} takes {', '.join(taken)}, a name that the harness uses"
            " itself"
        )
    return _plain(defaults | fixed, architecture)


def beside(task: TaskEntry, values: dict[str, Any]) -> dict[str, Any]:
    """Hyperparameters for a task: it is none of its own companions."""
    if "companions" not in values:
        return values
    return values | {"companions": [name for name in values["companions"] if name != task.id]}


def without_dropouts(architecture: ArchitectureEntry) -> dict[str, Any]:
    """As :func:`hyperparameters`, with the ordinary dropouts at 0."""
    values = hyperparameters(architecture)
    return _without_dropouts(values, loaded(architecture))


def _without_dropouts(values: dict[str, Any], cls: type) -> dict[str, Any]:
    for name in getattr(cls, "ordinary_dropouts", ()):
        if name in values:
            values[name] = [0.0] * len(values[name]) if isinstance(values[name], list) else 0.0
    return values


def _plain(values: dict[str, Any], entry: Entry) -> dict[str, Any]:
    """The values as JSON holds them, so that a cell read back from its record equals the cell that
    ran."""
    try:
        read_back: dict[str, Any] = json.loads(json.dumps(values, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise RegistryError(
            f"{entry.file}: hyperparameters of {entry.id} must be plain finite values: {error}"
        ) from error
    return read_back


def _described(file: Path) -> dict[str, Any]:
    """Name, SHA-256 and dimensions of a file of word vectors (GloVe or word2vec text format)."""
    try:
        with file.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as stream:
            head = [stream.readline(LONGEST_LINE).decode("utf-8").rstrip().split(" ") for _ in range(2)]
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise UsageError(
            f"--vectors {file}: {error}; expected a text file of lines `word number number ...`"
        ) from error
    has_header = len(head[0]) == 2 and all(field.isdecimal() for field in head[0])
    first = head[1] if has_header else head[0]
    try:
        dims = len([float(field) for field in first[1:]])
    except ValueError:
        dims = 0
    if dims < 1 or (has_header and dims != int(head[0][1])):
        raise UsageError(
            f"--vectors {file}: its first lines are not `word number number ...` with a blank between (GloVe or"
            " word2vec text format)"
        )
    return {"file": file.name, "sha256": digest, "dims": dims}


class Planner:
    """Cells of one run, which have all settings in common but architecture, task and seed.

    Raises :class:`UsageError` for an override that is malformed or of the wrong type;
    :meth:`check_overrides`, called after the last cell, for one that fits nothing.
    """

    def __init__(
        self,
        *,
        tier: Tier,
        protocol: str,
        budget: str = FULL,
        overrides: Sequence[str] = (),
        max_train: int | None = None,
        max_epochs: int | None = None,
        labels: int | None = None,
        vectors: Path | None = None,
        inputs: Sequence[str] = (),
        precision: str = "32",
        devices: int = 1,
    ):
        self.tier, self.protocol, self.budget, self.precision, self.devices = tier, protocol, budget, precision, devices
        self.max_train, self.max_epochs, self.labels = max_train, max_epochs, labels
        self.overrides = [parse_override(text) for text in overrides]
        self.vectors = _described(vectors) if vectors else None
        self.inputs = _sources(inputs)
        if budget != FULL and (max_train, max_epochs) != (None, None):
            raise UsageError(f"--budget {budget} with --max-train or --max-epochs: a budget of your own has no name")
        if labels is not None and (max_train, max_epochs) != (None, None):
            raise UsageError(f"--labels {labels} with --max-train or --max-epochs: its budget has a name")
        self._names: dict[Override, set[str]] = {override: set() for override in self.overrides}
        self._used: set[Override] = set()
        self._ids: dict[str, None] = {}
        self._pairs: dict[tuple[str, str, bool], Planned] = {}
        self._tiers: dict[str, tuple[Tier, str | None]] = {}

    def _tier(self, task: TaskEntry) -> tuple[Tier, str | None]:
        """The tier of a task's rows, and the reason why it has none on this tier and budget."""
        if task.id not in self._tiers:
            self._tiers[task.id] = tier_of(task, self.tier), no_data(task, self.tier) or no_budget(task, self.budget)
        return self._tiers[task.id]

    def _overridden(self, architecture: Entry, section: str, values: dict[str, Any]) -> dict[str, Any]:
        for override in self.overrides:
            if override.section == section and fnmatchcase(architecture.id, override.id):
                self._names[override] |= set(values)
                if override.name in values:
                    values[override.name] = parsed(override, values[override.name])
                    self._used.add(override)
        return values

    def changes(self, architecture: ArchitectureEntry) -> bool:
        """True if an override changes a setting of the architecture."""
        return any(fnmatchcase(architecture.id, override.id) for override in self._used)

    def cell(self, architecture: ArchitectureEntry, task: TaskEntry, seed: int, inputs: bool = True) -> Planned:
        """The cell of an architecture, a task and a seed, with the reason to skip it if it does not
        fit. Without ``inputs`` it reads no input sources but its own."""
        pair = architecture.id, task.id, inputs
        if pair not in self._pairs:
            self._pairs[pair] = self._of_pair(architecture, task, self._read_by(architecture, inputs))
        planned = self._pairs[pair]
        return planned._replace(cell=replace(planned.cell, seed=seed))

    def _read_by(self, architecture: ArchitectureEntry, others: bool) -> list[InputEntry]:
        """The input sources of an architecture: its own, and those of the run."""
        own = _sources(architecture.inputs, f"{architecture.id}: inputs")
        return own + [each for each in self.inputs if others and each not in own]

    def _of_pair(self, architecture: ArchitectureEntry, task: TaskEntry, inputs: Sequence[InputEntry]) -> Planned:
        """The cell of the two with seed 0, which reads the input sources."""
        from harness.training.protocols import VERSIONS, has_own_dropout, training, view_settings

        self._ids[architecture.id] = None
        protocol, overridden = self.protocol, functools.partial(self._overridden, architecture)
        budgets = registry.budgets_of(task)
        amount = budgets.get(self.budget, budgets[FULL])
        limits = Limits(self.max_train, self.max_epochs)
        if self.budget != FULL:
            limits = Limits(amount.examples, None, self.budget)
        if self.labels is not None and registry.entry("problems", task.type).answer_columns:
            limits = replace(limits, labels=self.labels)
            amount = amount.with_labels(self.labels)
        own = hyperparameters if has_own_dropout(protocol) else without_dropouts
        chosen = beside(task, overridden("", own(architecture)))
        trained = overridden("training", training(protocol, architecture, task, amount).to_dict(complete=True))
        try:
            settings = TrainingSettings.from_dict(trained)
        except ValueError as error:
            raise UsageError(f"-o {architecture.id}.{error}") from error
        values = {**chosen, "training": settings.to_dict(), "limits": limits.to_dict(), "vectors": self.vectors}
        if inputs:
            own_dropout = has_own_dropout(protocol)
            values["inputs"] = {e.id: self._overridden(e, "", input_settings(e, own_dropout)) for e in inputs}
            self._ids |= {each.id: None for each in inputs}
        ours = functools.partial(view_settings, protocol, task)
        if ours(True) or any(override.section == "view" for override in self.overrides):
            overridden_view = functools.partial(overridden, "view")
            values |= _changed_view(architecture, task, chosen, bool(inputs), ours, overridden_view)
        tier, missing = self._tier(task)
        cell = Cell(
            architecture=architecture.id,
            architecture_version=architecture.version,
            task=task.id,
            task_version=task.version,
            tier=tier,
            protocol=protocol,
            hyperparameters=values,
            seed=0,
            precision=self.precision,
            devices=self.devices,
            protocol_version=VERSIONS[protocol],
        )
        unfit = reason_to_skip(architecture, task, values)
        unfit = unfit or no_companions(architecture, task, cell.companions, values, tier)
        unfit = unfit or no_place_for_inputs(architecture, task, chosen, [each.id for each in inputs])
        return Planned(cell, missing or unfit, unfit is not None)

    def check_overrides(self) -> None:
        """Raise :class:`UsageError` for an override that fitted nothing so far."""
        for override in self.overrides:
            if override not in self._used:
                raise UsageError(unused(override, self._names[override], list(self._ids)))


def plan(
    architectures: Sequence[ArchitectureEntry],
    tasks: Sequence[TaskEntry],
    *,
    seeds: Sequence[int],
    homes: Mapping[str, str] | None = None,
    **options: Any,
) -> list[Planned]:
    """Every cell of the grid, seed by seed and task by task, with the reason to skip those that do
    not fit. ``homes`` gives each architecture its only task, ``options`` are those of
    :class:`Planner`.

    Raises :class:`UsageError` for an override that is malformed, of the wrong type, or fits nothing
    in this grid.
    """
    planner = Planner(**options)
    planned = [planner.cell(a, t, seed) for a, t, seed in combinations(architectures, tasks, seeds, homes)]
    planner.check_overrides()
    return planned


def combinations(
    architectures: Sequence[ArchitectureEntry],
    tasks: Sequence[TaskEntry],
    seeds: Sequence[int],
    homes: Mapping[str, str] | None = None,
) -> Iterator[tuple[ArchitectureEntry, TaskEntry, int]]:
    """Architecture, task and seed of every cell of a grid."""
    for seed in seeds:
        for task in tasks:
            for architecture in architectures:
                if homes is None or homes.get(architecture.id) == task.id:
                    yield architecture, task, seed


def _changed_view(
    architecture: ArchitectureEntry,
    task: TaskEntry,
    hyperparameters: dict[str, Any],
    spelt: bool,
    ours: Callable[[bool], dict[str, Any]],
    overridden: Callable[[dict[str, Any]], dict[str, Any]],
) -> dict[str, Any]:
    """``view`` with the settings that the protocol (``ours``, of views of words or of others) and
    overrides change; nothing where they change none, so that the cell is the one without them. A
    setting that follows from a hyperparameter is left to it. ``spelt`` views read characters of
    words, too."""
    cls, view = loaded(architecture).reader_and_view(task, hyperparameters)
    if spelt:
        from harness.views.words_and_characters import with_characters  # it imports torch

        view = with_characters(view) or view
    settings = {} if view is None else view.settings()
    known = {name: value for name, value in settings.items() if name != "view" and name not in cls.view_settings}
    wished = known | {name: value for name, value in ours(view.embeds).items() if name in known} if known else {}
    changes = {name: value for name, value in overridden(wished).items() if value != known[name]}
    if not changes:
        return {}
    try:
        view.changed(changes)
    except ValueError as error:
        raise UsageError(f"-o {architecture.id}.view.{error}") from error
    return {"view": changes}


def _sources(names: Iterable[str], named_by: str = "--inputs") -> list[InputEntry]:
    """Input sources by name, each once; :class:`UsageError` for a name that none has."""
    known = registry.entries("inputs")
    for name in names:
        check_choice(named_by, name, sorted(known))
    return [known[name] for name in sorted(set(names))]
