"""Systems that are fitted without gradient training of the harness."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from harness.kinds.base import Architecture, Prediction
from harness.task import Row


class Estimator(Architecture):
    """A system without gradient training: counts, a convex solver, a graph over the corpus.

    ``task_types`` are the types it runs on; a constructor with a parameter ``task_type`` is given
    that of the task. A ``transductive`` one is also given the test rows without their answers; the
    leaderboard says so.
    """

    gives = "predictions"
    task_types: ClassVar[tuple[str, ...]] = ("classify",)
    transductive: ClassVar[bool] = False
    from_dev: ClassVar[tuple[str, ...] | None] = None
    """Parts of :meth:`fitted_state` that depend on dev, such as a setting that is chosen there; all
    others are the same whatever dev is. None, which a plugin of an older version has, says
    nothing; of a class of this package it means that no part does."""
    deterministic: bool | None = None
    """True where equal seeds give equal bits, False where they do not, as with threads that write
    over each other's numbers; None where a system does not say."""
    parameter_count: int = 0
    flops_per_example: float | None = None
    """Floating-point operations of one answer, where the system is one of matrix products; known
    once it is fitted."""

    @classmethod
    def can_answer(cls, type: str) -> bool:
        return type in cls.task_types

    @classmethod
    def reader(cls, hyperparameters: dict[str, Any]) -> None:
        return None

    def __init__(self, seed: int = 0):
        self.seed = seed

    def prepare(self) -> None:
        """Do what a process does once, before its first fit, such as compiling: no measured time
        counts it."""

    def fit(self, train: Sequence[Row], dev: Sequence[Row], unlabelled: Sequence[Row] = ()) -> None:
        """Learn from training rows; ``dev`` is for choosing settings, which :attr:`from_dev`
        names, ``unlabelled`` the test texts of a transductive system."""
        raise NotImplementedError

    def predict(self, rows: Sequence[Row]) -> list[Prediction]:
        """The prediction of each row, in the task type's format."""
        raise NotImplementedError

    def answers(self, rows: Sequence[Row]) -> list[dict[str, Any]]:
        """The prediction of each row for a user (:data:`harness.problems.base.Answer`); a system
        that knows how sure it is says so beside it."""
        return [{"prediction": prediction} for prediction in self.predict(rows)]

    def chosen_on_dev(self) -> dict[str, Any]:
        """The hyperparameters that :meth:`fit` chose on dev: with them a fit without dev chooses
        nothing. Who wants a model for use has it learn from dev's rows too then."""
        return {}

    def chosen_with(self, *others: Any) -> dict[str, Any]:
        """The hyperparameters that this fit and others of the same settings choose together, each
        of which had other rows as dev. By default those of this one alone."""
        return self.chosen_on_dev()

    @classmethod
    def memory_needed(cls, size: int, hyperparameters: dict[str, Any]) -> float:
        """Bytes of memory that a fit takes, about: ``size`` are those of its training rows as Arrow
        holds them. A cell for which the machine has less is skipped.

        By default what rows as Python objects and counts of words and pairs of words take.
        """
        return 30.0 * size

    def word_vectors(self) -> Mapping[str, np.ndarray] | None:
        """The vector of each word that it learnt, which others start from in the role ``vectors``;
        None for a system without any."""
        return None

    def tokenizer(self) -> str | None:
        """The tokenizer by which it divides words into pieces, as the library tokenizers writes
        one, and by which others read in the role ``tokens``; None for a system without any."""
        return None

    def fitted_state(self) -> dict[str, Any]:
        """All that :meth:`predict` needs beside what the constructor is given.

        By default all attributes. Values are numbers, texts, bytes, numpy arrays, tensors, sparse
        matrices, and lists, tuples, sets, dicts and counters of them
        (:mod:`harness.saved_models.values`). A system with other objects, such as scikit-learn's,
        gives what these learnt.
        """
        return dict(vars(self))

    def restore_fitted(self, state: dict[str, Any]) -> None:
        """Undo :meth:`fitted_state`, in a fresh system with the same settings."""
        vars(self).update(state)


def made(cls: type[Estimator], task_type: str, seed: int, settings: dict[str, Any]) -> Estimator:
    """A fresh system; one whose constructor asks for the task's type is given it."""
    given = {"task_type": task_type} if "task_type" in inspect.signature(cls).parameters else {}
    return cls(seed=seed, **given, **settings)
