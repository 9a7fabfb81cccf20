"""The base of all kinds: what the harness asks of an architecture."""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np

from harness import registry
from harness.registry import TaskEntry
from harness.task import Row
from harness.views.base import View
from harness.views.words import Words

Prediction = Any


OUTPUTS = {
    "states": "a state per position",
    "frame states": "a state per frame of a recording",
    "vector": "a vector per text",
    "class scores": "scores of the classes of one text",
    "label scores": "scores of the classes of one text, or of labels of which it has any number",
    "label sets": "a vector per text, from which the encoder itself says a set of labels",
    "node states": "a state per node of a tree",
    "pair vector": "a vector per pair of texts",
    "pair score": "a similarity per pair of texts",
    "emissions": "label scores per word",
    "spans": "start and end scores of a span",
    "fact vector": "a vector per story and question",
    "chosen facts": "facts of a story, one after another, and scores of the answers",
    "frame labels": "label scores per frame",
    "frame labels and states": "label scores per frame, or those of states to which frames are aligned",
    "next symbols": "scores of the next symbol",
    "symbols and copies": "scores of the next symbol, words of the source among them",
    "next words": "the probability of each word of a text, given those before it",
    "joined states": "a state per piece of the joined texts",
    "predictions": "answers without gradient training",
}
"""Outputs of an architecture (:meth:`Architecture.output_form`), in words."""


class Parent(Protocol):
    """A model from which an architecture starts, as it asks for it
    (:class:`harness.saved_models.base.KeptModel`)."""

    model: Any
    """The trained model with its ``encoder`` and ``head``; None for a system without gradient
    training."""
    view: View | None
    """The view that reads for it; None for such a system."""

    estimator: Any
    """The fitted system (:class:`~harness.kinds.Estimator`); None for a model that was trained by
    gradients."""

    def answers(self, rows: Sequence[Row]) -> list[dict[str, Any]]:
        """The prediction of each row with its probabilities, where the model gives some."""
        ...

    def word_vectors(self) -> Mapping[str, np.ndarray] | None:
        """The vector of each word that the model knows; None for a model without any."""
        ...

    def tokenizer(self) -> str | None:
        """The tokenizer that the model learnt; None for a model that learnt none."""
        ...


class Architecture:
    """Base class of all kinds: the view that it reads, the output that it gives, and the tasks that
    it cannot run on."""

    gives: ClassVar[str]
    """Its output, one of :data:`OUTPUTS`, by which a problem chooses the head."""

    @classmethod
    def output_form(cls) -> str:
        """The output of this class."""
        return cls.gives

    view: ClassVar[View | None] = Words()
    view_settings: ClassVar[dict[str, str]] = {}
    """Fields of the view that a hyperparameter sets: the field's name to the hyperparameter's."""

    @classmethod
    def reads(cls, column: str, hyperparameters: dict[str, Any]) -> View | None:
        """A fresh view for a task whose texts stand in ``column``; None when this architecture
        cannot read such a column."""
        if cls.view is None or cls.view.column != column:
            return None
        chosen = {field: hyperparameters[name] for field, name in cls.view_settings.items() if name in hyperparameters}
        return dataclasses.replace(copy.deepcopy(cls.view), **chosen)  # type: ignore[type-var]

    @classmethod
    def view_for(cls, task: TaskEntry, hyperparameters: dict[str, Any]) -> View | None:
        """A fresh view for the first of the task's inputs that this architecture can read; None
        when it can read none."""
        views = (cls.reads(column, hyperparameters) for column in registry.load(task).inputs)
        return next((view for view in views if view is not None), None)

    needs_label_tree: ClassVar[bool] = False
    """True for one that runs on no task without :attr:`~harness.task.Task.label_tree`."""

    takes: ClassVar[tuple[str, ...]] = ()
    """Roles in which it takes a kept model (:data:`harness.settings.ROLES`). Word vectors need no
    word here: whatever embeds words takes them."""

    @classmethod
    def roles(cls, type: str) -> tuple[str, ...]:
        """Those of its roles in which it takes one on tasks of a type: by default all."""
        return cls.takes

    def inherit(self, role: str, parent: Parent, rows: Sequence[Row]) -> None:
        """Take what a kept model learnt. Called once for each role, after the constructor and
        before training; ``rows`` are the training rows without their answers, and none where a kept
        child is loaded. Whatever it raises ends the cell as failed."""

    @classmethod
    def default_parents(cls, parents: dict[str, str], hyperparameters: dict[str, Any]) -> dict[str, str]:
        """Those of its registered parents, by role, from which it starts with these
        hyperparameters."""
        return parents

    @classmethod
    def inherited_view(cls, view: View, role: str, parent: Parent) -> View:
        """The view with what a kept model gives to the reading of texts, such as a tag for each
        word. Called once for each role, before the view is fitted or restored."""
        return view

    @classmethod
    def reader(cls, hyperparameters: dict[str, Any]) -> tuple[type[Architecture], dict[str, Any]] | None:
        """The class whose view reads the texts, and its hyperparameters; None for a system that
        reads the rows themselves."""
        return cls, hyperparameters

    @classmethod
    def reader_and_view(
        cls, task: TaskEntry, hyperparameters: dict[str, Any]
    ) -> tuple[type[Architecture], View | None] | tuple[None, None]:
        """The class whose view reads the texts of a task, and that view; None for what is not."""
        found = cls.reader(hyperparameters)
        return (found[0], found[0].view_for(task, found[1])) if found else (None, None)

    @classmethod
    def reason_to_skip(cls, task: TaskEntry, hyperparameters: dict[str, Any]) -> str | None:
        """The reason why this architecture cannot run on a task, or None: the task's type decides
        first, then :meth:`unfit`."""
        if not cls.can_answer(task.type):
            types = _types_answered(cls, tuple(registry.entries("problems")))  # type: ignore[arg-type]
            given = OUTPUTS.get(cls.output_form(), cls.output_form())
            return f"gives {given}: runs on {', '.join(types) or 'nothing'}; {task.id} is of type {task.type}"
        if cls.needs_label_tree and not registry.load(task).label_tree:
            return f"needs a tree over the labels, and {task.id} declares none"
        return cls.unfit(task, hyperparameters)

    @classmethod
    def can_answer(cls, type: str) -> bool:
        """True if tasks of a type can be answered from what this architecture gives."""
        return cls.output_form() in registry.load(registry.entry("problems", type)).heads

    @classmethod
    def unfit(cls, task: TaskEntry, hyperparameters: dict[str, Any]) -> str | None:
        """The reason why this architecture cannot run on a task whose type it fits, or None."""
        columns = registry.load(task).inputs
        if cls.view_for(task, hyperparameters) is not None:
            return None
        wanted = getattr(cls.view, "column", "text")
        return f"reads {wanted}, but {task.id} offers {' and '.join(columns)}"


@functools.cache
def _types_answered(cls: type[Architecture], types: tuple[str, ...]) -> tuple[str, ...]:
    """The task types that a class can answer; a grid asks for each of its pairs that do not fit."""
    return tuple(type for type in types if cls.can_answer(type))
