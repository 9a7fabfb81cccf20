"""The parts from which the models of one cell are built."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import pytorch_lightning as pl

from harness import registry
from harness.data.companions import companions_of
from harness.data.corpus import Corpus
from harness.data.corpus import Split as EncodedSplit
from harness.data.word_vectors import read_vectors
from harness.kinds import Encoder, Regime
from harness.metrics import main_score
from harness.records import Cell
from harness.records.blocks import NO_VECTORS, Vectors
from harness.registry import ArchitectureEntry
from harness.running.grid import HARNESS_SECTIONS, hyperparameters, without_dropouts
from harness.running.worker_settings import Settings
from harness.saved_models import storage
from harness.saved_models.model import load
from harness.saved_models.parents import Parents
from harness.settings import Limits, TrainingSettings
from harness.task import Task
from harness.training.fit_module import FitModule
from harness.training.model import Model, build, objective_of
from harness.training.protocols import has_own_dropout
from harness.views.words_and_characters import with_characters

PILOT_DEV, PILOT_SEED = 1000, 1
"""Dev rows on which the pilots are compared, and the seed of their random choice: the same rows for
every rate and cell. The first rows of a file that is sorted by class would be of one class."""


def task_of(cell: Cell) -> Task:
    entry = registry.entry("tasks", cell.task)
    task: Task = registry.load(entry)(entry)
    return task


def constructor_settings(cell: Cell) -> dict[str, Any]:
    """A cell's hyperparameters without the sections that the harness fills."""
    return {name: value for name, value in cell.hyperparameters.items() if name not in HARNESS_SECTIONS}


def parents_of(cell: Cell, settings: Settings) -> Parents:
    """The models that a cell starts from."""
    return Parents(cell.parents, settings.results / storage.MODELS, load)


class Assembly:
    """Parts from which the models of one cell are built: the corpus, the classes, the settings.
    ``task`` takes the place of the cell's own."""

    def __init__(self, cell: Cell, settings: Settings, task: Task | None = None):
        self.cell, self.task = cell, task or task_of(cell)
        self.training = TrainingSettings.from_dict(cell.hyperparameters["training"])
        if Limits.of(cell.hyperparameters).max_epochs is not None:  # the user's number of passes counts
            self.training = dataclasses.replace(self.training, min_steps=0)
        entry = registry.entry("architectures", cell.architecture)
        self.regime, self.encoder_entry, self.settings = unwrapped(
            entry, constructor_settings(cell), has_own_dropout(cell.protocol)
        )
        self.encoder_class: type[Encoder] = registry.load(self.encoder_entry)
        view = self.encoder_class.view_for(self.task.entry, self.settings)
        if cell.inputs:
            view = with_characters(view)
        assert view is not None, "a cell is planned for what fits alone"
        if changes := cell.hyperparameters.get("view"):
            view = view.changed(changes)
        self.parents = parents_of(cell, settings)
        view = self.parents.inherited_view(self.encoder_class, view)
        limits, cache = Limits.of(cell.hyperparameters), settings.work / "encoded"
        self.companions = companions_of(  # of the task as it is, where another one takes its place
            task_of(cell),
            cell.companions,
            cell.tier,
            settings.data_dir,
            limits.labelled,
            self.encoder_class.output_form(),
        )
        objectives = [each.trained_by for each in (self.regime, self.encoder_class) if each and each.trained_by]
        self.corpus = Corpus(
            self.task,
            cell.tier,
            settings.data_dir,
            view,
            self.encoder_class.output_form(),
            max_train=limits.max_train,
            labels=limits.labels,
            cache=cache,
            parents=sorted(self.parents.digests.values()),
            sees=self.encoder_entry.sees,
            streams=[stream for objective in objectives for stream in objective.streams],
            companions=self.companions,
        )
        self.vectors_file = settings.vectors
        self.dims = self.training.vector_dims
        """Width of the last model's word vectors."""
        self.vectors: Vectors | None = None
        """The word vectors that the last model started from; None for a view without."""

    def model(self, seed: int) -> Model:
        """A fresh model, the same for the same seed."""
        pl.seed_everything(seed, verbose=False)
        view: Any = self.corpus.view  # one that embeds has a vocabulary
        dims, vectors = self.training.vector_dims, None
        if self.vectors_file is not None and view.embeds:
            vectors, known = read_vectors(self.vectors_file, view.vocabulary)
            dims = vectors.shape[1]
            print(f"{known} of {len(view.vocabulary)} words have a vector in {self.vectors_file}")
            given = self.cell.hyperparameters["vectors"]
            self.vectors = {"name": given["file"], "sha256": given["sha256"], "dims": dims, "words": known}
        if view.embeds and (found := self.parents.vectors(view.vocabulary)) is not None:
            vectors, known = found
            dims, parent = vectors.shape[1], self.cell.parents["vectors"]
            self.vectors = {"name": parent["architecture"], "key": parent["key"], "dims": dims, "words": known}
        model = build(
            self.encoder_class,
            self.corpus.problem,
            self.settings,
            view,
            self.corpus.target,
            dims,
            vectors,
            self.training,
            self.cell.inputs,
        )
        self.dims = dims
        if model.table is not None:
            self.vectors = self.vectors or {"name": NO_VECTORS, "dims": dims}
        if self.regime is not None:
            self.regime.apply(model, view)
        if self.parents.models:
            rows = self.corpus.problem.input_rows(self.corpus.train.rows.to_list())
            for child in filter(None, (model.encoder, model.head, self.regime, *model.sources.values())):
                self.parents.give(child, rows, view)
        return model

    @functools.cached_property
    def pilot_dev(self) -> EncodedSplit:
        """The dev rows on which learning rates are compared."""
        return self.corpus.dev.some(PILOT_DEV, PILOT_SEED, self.corpus.problem.entry.stratum)

    @functools.cached_property
    def pilot_floor(self) -> float:
        """The main metric on :attr:`pilot_dev` of predictions without a model."""
        rows, corpus = self.pilot_dev.rows.to_list(), self.corpus
        floors = corpus.problem.floors_of(self.encoder_class, corpus.train.rows.to_list(), rows, corpus.view)
        return main_score(self.task, next(iter(floors.values())), rows)

    def training_of(self, model: Model, lr: float) -> FitModule:
        """One fit of a model at a learning rate."""
        objective, corpus, entry = objective_of(model, self.training, self.regime), self.corpus, self.task.entry
        training = FitModule(
            model,
            objective,
            corpus.train,
            corpus.dev,
            self.training,
            lr,
            self.cell.seed,
            entry.metrics,
            entry.main_metric,
            whole_groups=getattr(self.encoder_class, "whole_groups", False),
            unlabelled=corpus.unlabelled if "unlabelled" in objective.streams else None,
            companions=corpus.companion_splits,
        )
        if model.table is not None:  # by now a regime, a parent or the settings have frozen what they freeze
            assert self.vectors is not None
            self.vectors["tuned"] = any(weights.requires_grad for weights in model.table.parameters())
        return training

    def most_epochs(self, training: FitModule) -> int:
        """Epochs after which a training of the cell ends at the latest."""
        return min(
            Limits.of(self.cell.hyperparameters).max_epochs or training.settings.epochs, training.settings.epochs
        )


def unwrapped(
    entry: ArchitectureEntry, settings: dict[str, Any], own_dropout: bool = True
) -> tuple[Regime | None, ArchitectureEntry, dict[str, Any]]:
    """The regime (if the entry is one), the architecture that is trained, and its constructor's
    settings: of one that is wrapped with or without its ordinary dropouts."""
    cls = registry.load(entry)
    if not issubclass(cls, Regime):
        return None, entry, settings
    wrapped = registry.entry("architectures", settings["wraps"])
    return cls(**settings), wrapped, hyperparameters(wrapped) if own_dropout else without_dropouts(wrapped)
