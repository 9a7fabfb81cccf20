"""Kept models: written after a cell, loaded in another process, and asked.

What a model is made of is looked up here, by the names of its architecture and of its task's type:
the folder brings settings, vocabularies and numbers alone. The task itself need not be here.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from harness import registry
from harness.data.corpus import Split
from harness.errors import ArchbenchError, ModelError
from harness.kinds import Encoder, Estimator, made
from harness.problems import problem
from harness.problems.base import Answer, NoTarget, Target
from harness.records.provenance import own_version
from harness.registry import ArchitectureEntry, InputEntry
from harness.saved_models import folder as files
from harness.saved_models.base import KeptModel
from harness.saved_models.folder import Description, Origin, Part
from harness.saved_models.parents import Parents, require_same
from harness.saved_models.storage import asked_parents_of, inputs_of, of_other_code
from harness.saved_models.values import packed, unpacked
from harness.settings import TrainingSettings
from harness.task import Row
from harness.training.model import Model, answers, build
from harness.views.base import View
from harness.views.words_and_characters import with_characters


class TrainedModel(KeptModel):
    """A model trained by gradients, with the view that reads for it and the target that names its
    answers."""

    def __init__(self, description: Description, model: Model, view: View, target: Target):
        super().__init__(description)
        self.model: Model = model
        self.view: View = view
        self.target = target
        assert description.training is not None
        self.training = TrainingSettings.from_dict(description.training)
        self.fields = self.problem.fields(model.encoder.output_form(), view)

    def split(self, rows: Sequence[Row]) -> Split:
        """The rows as the model reads them."""
        inputs = {field: self.view.encode([read(row) for row in rows]) for field, read in self.fields.items()}
        return Split(rows, self.view, NoTarget(), inputs, self.target.places(rows, self.view))

    def answers(self, rows: Sequence[Row]) -> list[Answer]:
        device = next(self.model.parameters()).device
        return answers(self.model, self.split(rows), self.training.batch_size, device)

    def word_vectors(self) -> Mapping[str, np.ndarray] | None:
        if self.model.table is None:
            return None
        rows = self.model.table.tuned.weight.detach().cpu().numpy()
        return dict(zip(self.view.vocabulary.words, rows[2:], strict=True))  # type: ignore[attr-defined]

    def check(self, row: Row) -> None:
        self.split([row])

    def write(self, folder: Path) -> None:
        weights = {name: value.detach().cpu().clone().contiguous() for name, value in self.model.state_dict().items()}
        files.write(folder, self.description, {"view": self.view.state(), "target": self.target.state()}, weights)


class FittedModel(KeptModel):
    """A system without gradient training."""

    def __init__(self, description: Description, estimator: Estimator):
        super().__init__(description)
        self.estimator: Estimator = estimator

    def answers(self, rows: Sequence[Row]) -> list[Answer]:
        return self.estimator.answers(rows)

    def word_vectors(self) -> Mapping[str, np.ndarray] | None:
        return self.estimator.word_vectors()

    def tokenizer(self) -> str | None:
        return self.estimator.tokenizer()

    def write(self, folder: Path) -> None:
        arrays: dict[str, Tensor] = {}
        state = {} if self.description.transductive else self.estimator.fitted_state()
        where = f"{self.description.part.architecture}: what fitted_state gives as "
        files.write(folder, self.description, {n: packed(v, arrays, where + n) for n, v in state.items()}, arrays)


def trained_model(
    origin: Origin,
    type: str,
    part: Part,
    regime: Part | None,
    model: Model,
    view: View,
    target: Target,
    dims: int,
    training: TrainingSettings,
    row: Row,
) -> TrainedModel:
    """A model of a task's ``type`` that has just been trained; ``row`` is one that it was trained
    on."""
    asked = problem(type)
    readers = asked.fields(model.encoder.output_form(), view).values()
    description = Description(
        archbench=own_version(),
        origin=origin,
        type=type,
        classes=getattr(target, "labels", None),
        inputs=_needed(asked.input_row(row), asked.entry.forms, lambda one: [read(one) for read in readers]),
        part=part,
        regime=regime,
        column=view.column,
        view=view.settings(),
        dims=dims,
        training=training.to_dict(),
    )
    return TrainedModel(description, model, view, target)


def fitted_model(origin: Origin, type: str, part: Part, estimator: Estimator, row: Row) -> FittedModel:
    """A system that has just been fitted to rows such as ``row``."""
    asked = problem(type)
    inputs: dict[str, str] = {}
    if not estimator.transductive:
        inputs = _needed(asked.input_row(row), asked.entry.forms, lambda one: estimator.predict([one]))
    description = Description(
        archbench=own_version(),
        origin=origin,
        type=type,
        inputs=inputs,
        part=part,
        transductive=estimator.transductive,
    )
    return FittedModel(description, estimator)


def _needed(row: Row, forms: Mapping[str, str], read: Callable[[Row], object]) -> dict[str, str]:
    """The columns of a row without which it cannot be read, each with its form; the first one for a
    system that reads none."""
    columns = [name for name in row if name != "id"]
    needed = [name for name in columns if not _reads(read, {n: v for n, v in row.items() if n != name})]
    return {name: forms.get(name) or _form(row[name]) for name in needed or columns[:1]}


def _reads(read: Callable[[Row], object], row: Row) -> bool:
    try:
        read(row)
    except Exception:  # a plugin's code, which may raise anything for a column that is not there
        return False
    return True


def _form(value: Any) -> str:
    return "string" if isinstance(value, str) else "words"  # a text may be either, whatever the problem


def load(folder: Path, device: torch.device | str = "cpu") -> KeptModel:
    """The model kept in a folder, ready to answer.

    :class:`~harness.errors.ModelError` names a folder or file that is missing, damaged, of another
    architecture or version, or whose parts do not fit together, and a transductive system;
    :class:`~harness.errors.UnknownName` an architecture or a task type that is not registered. A
    warning tells that the architecture's code has changed since.
    """
    description = files.describe(folder)
    if of_other_code(description):
        id = description.part.architecture
        warnings.warn(
            f"{folder}: the code of {id} has changed since: its answers may not be those that were scored; to train it"
            " again, `archbench run --changed --keep`",
            stacklevel=2,
        )
    if description.transductive:
        raise ModelError(
            f"{folder}: {description.part.architecture} is transductive: it answers the texts that it was fitted"
            " with, and cannot answer new ones"
        )
    cls = _class_of(folder, description.part)
    state, arrays = files.read(folder, description)
    try:
        parents = Parents(asked_parents_of(description), folder.parent, load)
        parents.require_unchanged(description)
        if issubclass(cls, Estimator):
            return FittedModel(description, _fitted(cls, description, parents, state, arrays))
        return _trained(folder, cls, description, parents, state, arrays, device)
    except ArchbenchError:
        raise
    except Exception as error:  # an architecture may raise anything when its sizes or words are others
        raise ModelError(
            f"{folder}: its parts do not fit together: {type(error).__name__}: {str(error)[:300]}"
        ) from error


def _class_of(folder: Path, part: Part) -> Any:
    """The registered class of a part; an error for one of another version."""
    entry = registry.entry("architectures", part.architecture)
    _require_version(folder, entry, part.version)
    return registry.load(entry)


def _require_version(folder: Path, entry: ArchitectureEntry | InputEntry, version: int) -> None:
    if entry.version != version:
        raise ModelError(
            f"{folder}: made by version {version} of {entry.id}, and here is version {entry.version}:"
            " train it again with `archbench run --keep`"
        )


def _fitted(
    cls: type[Estimator], description: Description, parents: Parents, state: Any, arrays: dict[str, Tensor]
) -> Estimator:
    if description.transductive != cls.transductive or not isinstance(state, dict):
        raise ValueError("no state of a system without gradient training")
    estimator = made(cls, description.type, description.origin.cell.get("seed", 0), description.part.settings)
    parents.give(estimator, ())
    estimator.restore_fitted({name: unpacked(value, arrays) for name, value in state.items()})
    return estimator


def _trained(
    folder: Path,
    cls: type[Encoder],
    description: Description,
    parents: Parents,
    state: Any,
    weights: dict[str, Tensor],
    device: torch.device | str,
) -> TrainedModel:
    sources = inputs_of(description)
    for name, given in sources.items():
        _require_version(folder, registry.entry("inputs", name), given["version"])
    view = parents.inherited_view(cls, _view(cls, description))
    view.restore(state["view"])
    asked = problem(description.type)
    target = asked.target(cls.output_form())
    target.restore(state["target"])
    training, settings = TrainingSettings.from_dict(description.training or {}), description.part.settings
    with torch.random.fork_rng(devices=[]):  # a model begins at random, and nobody's numbers should be used up
        model = build(cls, asked, settings, view, target, description.dims or 0, None, training, sources)
        if description.regime is not None:
            _class_of(folder, description.regime)(**description.regime.settings).apply(model, view)
        for child in (model.encoder, *model.sources.values()):
            parents.give(child, (), view)
    require_same(folder / files.WEIGHTS, model.state_dict(), weights)
    kinds = {value.dtype for value in weights.values() if value.is_floating_point()}
    if len(kinds) == 1:
        model.to(kinds.pop())
    model.load_state_dict(weights)
    return TrainedModel(description, model.to(device).eval(), view, target)


def _view(cls: type[Encoder], description: Description) -> View:
    """The view that the architecture has for the column, with the kept settings."""
    settings = dict(description.view or {})
    name, column = settings.pop("view", None), description.column or "text"
    view = cls.reads(column, description.part.settings)
    if inputs_of(description):
        view = with_characters(view)
    if view is None or type(view).__name__ != name:
        found = "nothing" if view is None else type(view).__name__
        raise ValueError(
            f"{description.part.architecture} reads {found} of {column}, and the kept view is {name!r:.80}"
        )
    return dataclasses.replace(view, **settings)  # type: ignore[type-var]
