"""An architecture that is trained by gradients, on one mini task."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from harness import registry
from harness.contract.case import Case, of_no_cell
from harness.contract.imports import again
from harness.data.companions import companions_of
from harness.data.corpus import Corpus, Split
from harness.kinds import Encoder
from harness.objectives import Objective, Step
from harness.problems.base import Batch, NoTarget
from harness.ragged import Columns
from harness.registry import ArchitectureEntry, TaskEntry
from harness.running import grid
from harness.running.assembly import unwrapped
from harness.saved_models.folder import Part
from harness.saved_models.model import TrainedModel, trained_model
from harness.settings import TrainingSettings
from harness.task import Row
from harness.training.lazy_updates import LazyAdam, clip_gradients
from harness.training.model import Model, build, objective_of
from harness.training.optimizers import set_gradients
from harness.views.base import View
from harness.views.words_and_characters import with_characters

VECTOR_DIMS = 24
SETTINGS = TrainingSettings()


_corpora: dict[tuple[str, ...], Corpus] = {}


def _corpus(task: Any, view: View, gives: str, sees: tuple[str, ...], companions: list[str]) -> Corpus:
    key = task.entry.id, json.dumps(view.settings(), sort_keys=True, default=str), gives, *sees, *companions
    if key not in _corpora:
        beside = companions_of(task, companions, "mini", None, None, gives)
        _corpora[key] = Corpus(task, "mini", None, view, gives, sees=sees, companions=beside)
    return _corpora[key]


def evidence(model: Model, split: Split, rows: np.ndarray) -> list[Tensor]:
    """The numbers by which a model answers some rows of a split, in evaluation."""
    model.eval()
    with torch.no_grad():
        inputs = model.read(split.collate(np.asarray(rows)).inputs)
        return [numbers.clone() for numbers in model.head.evidence(model.encoder, model.head(model.encoder, inputs))]


class ModelCase(Case):
    """An architecture trained by gradients, on one mini task: its models and their steps."""

    inputs: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    """Sources of further numbers for each word, as a cell has them."""
    dims = VECTOR_DIMS
    """Width of word vectors."""

    def __init__(self, entry: ArchitectureEntry, task: TaskEntry, settings: dict[str, Any]):
        settings = grid.beside(task, settings)
        self.entry, self.task, self.given = entry, registry.load(task)(task), settings
        companions = settings.get("companions", [])
        self.regime, wrapped, settings = unwrapped(entry, settings)
        if self.regime is not None:
            settings = grid.hyperparameters(wrapped) | wrapped.tiny
        self.settings = settings
        self.cls: type[Encoder] = registry.load(wrapped)
        own = [registry.entry("inputs", name) for name in wrapped.inputs]
        self.inputs = {**self.inputs, **{each.id: grid.input_settings(each) | each.tiny for each in own}}
        view = self.cls.view_for(task, settings)
        if self.inputs:
            view = with_characters(view)
        assert view is not None  # the case is one that the architecture fits
        self.corpus = _corpus(self.task, view, self.cls.output_form(), wrapped.sees, companions)
        self.problem = self.corpus.problem
        self.audio = "audio" in self.corpus.train.rows.column_names
        self.repeatable = True

    def model(self, seed: int = 0) -> Model:
        # torch.manual_seed notes its place in the code for each sort of device, a millisecond.
        torch.default_generator.manual_seed(seed)
        return self.built()

    def built(self) -> Model:
        view = self.corpus.view
        model = build(self.cls, self.problem, self.settings, view, self.corpus.target, self.dims, inputs=self.inputs)
        if self.regime is not None:
            self.regime.apply(model, view)
        return model

    def loss(self, model: Model, batch: Batch, progress: float = 0.5) -> Tensor:
        return self.losses(model, self.objective(model), batch, progress=progress)["loss"]

    def objective(self, model: Model) -> Objective:
        """The objective with which a model of this case is trained."""
        objective = objective_of(model, SETTINGS, self.regime)
        unlabelled = {"unlabelled": self.corpus.unlabelled} if "unlabelled" in objective.streams else {}
        objective.begin({"labelled": self.corpus.train, **unlabelled, **self.corpus.companion_splits})
        return objective

    def losses(
        self, model: Model, objective: Objective, batch: Batch, passes: int = 1, progress: float = 0.5
    ) -> dict[str, Tensor]:
        """Losses of a labelled batch, in the pass over the rows of this number, when that share of
        the training is done."""
        return objective.losses(model, Step(self.streams(objective, batch), progress=progress, passes=passes))

    def companion_losses(self, model: Model) -> Iterator[Tensor]:
        """The loss of a batch of each further task that the objective trains on."""
        objective = self.objective(model)
        for stream in objective.streams[1:] if objective.in_turn else ():
            split = self.corpus.companion_splits[stream]
            batch = split.collate(np.arange(min(64, len(split))))
            yield objective.losses(model, Step({stream: batch}, progress=0.5, passes=1))["loss"]

    def streams(self, objective: Objective, batch: Batch) -> dict[str, Batch]:
        """A labelled batch, and the same rows without labels where the objective asks for some."""
        batches = {"labelled": batch}
        if "unlabelled" in objective.streams:
            batches["unlabelled"] = self.corpus.unlabelled.collate(batch.rows)
        return batches

    def some_rows(self) -> list[Row]:
        rows = self.corpus.train.rows
        return [rows[int(i)] for i in self.eight()]

    def eight(self) -> np.ndarray:
        """Rows spread over the training split; whole questions for ranking, so that each has a
        right and a wrong candidate."""
        split = self.corpus.train
        if split.groups is not None:
            return np.flatnonzero(split.groups < 2)[:16]
        return np.linspace(0, len(split) - 1, 8).astype(int)

    def evidence(self, model: Model, rows: np.ndarray, split: Split | None = None) -> list[Tensor]:
        return evidence(model, split or self.corpus.train, rows)

    def encoded(self, rows: Mapping[str, Sequence[Row]]) -> dict[str, Columns]:
        """Inputs by field, each read from rows of its own."""
        return {
            field: self.corpus.view.encode([read(row) for row in rows[field]])
            for field, read in self.corpus.fields.items()
        }

    def asked(self, rows: Mapping[str, Sequence[Row]]) -> Split:
        """A split of such inputs, without targets."""
        return Split(self.corpus.train.rows, self.corpus.view, NoTarget(), self.encoded(rows), {})

    def labelled(self, table: Any, rows: list[Row]) -> Split:
        """A split of the rows, which a table holds too, with their targets."""
        view, target = self.corpus.view, self.corpus.target
        inputs = self.encoded(dict.fromkeys(self.corpus.fields, rows))
        return Split(table, view, target, inputs, target.encode(rows, view))

    def train(
        self, model: Model, split: Split, batches: list[np.ndarray], lr: float, anew: bool = True
    ) -> Iterator[Tensor]:
        """Losses of one Adam step per batch, each a pass of its own; without ``anew`` an objective
        that asks other things in each asks what it does in evaluation."""
        objective = self.objective(model)
        trained = objective.trained(model)
        optimizers = [LazyAdam(parameters, lr=lr) for parameters in trained.values()]
        model.train()
        objective.train()
        for number, rows in enumerate(batches, start=1):
            for optimizer in optimizers:
                optimizer.zero_grad()
            losses = self.losses(model, objective, split.collate(rows), number if anew else 0)
            set_gradients(losses, trained)
            for optimizer, parameters in zip(optimizers, trained.values(), strict=True):
                clip_gradients(parameters, 5.0)
                optimizer.step()
            model.head.constrain(model.encoder)
            yield losses["loss"].detach()

    def anew(self) -> Self:
        """This case as a new process has it: the plugin's file is imported once more."""
        case, cls = copy.copy(self), again(self.entry)
        if self.regime is not None:
            case.regime = cls(**self.given)
            return case
        case.cls, view = cls, cls.view_for(self.task.entry, self.settings)
        if type(view).__module__ == cls.__module__:  # the plugin's own, whose batches are of a new class too
            view.restore(self.corpus.view.state())
            case.corpus, rows = copy.copy(self.corpus), self.corpus.train.rows
            case.corpus.view = view
            case.corpus.train = case.labelled(rows, rows.to_list())
        return case

    def kept(self, model: Model) -> TrainedModel:
        """A model of this case as a cell keeps it."""
        wrapped = registry.entry("architectures", self.given["wraps"]) if self.regime is not None else self.entry
        parts = [
            Part(architecture=entry.id, version=entry.version, settings=settings)
            for entry, settings in ((wrapped, self.settings), (self.entry, self.given))
        ]
        return trained_model(
            of_no_cell(inputs=dict(self.inputs)),
            self.task.entry.type,
            parts[0],
            parts[1] if self.regime is not None else None,
            model,
            self.corpus.view,
            self.corpus.target,
            self.dims,
            SETTINGS,
            self.corpus.train.rows[0],
        )
