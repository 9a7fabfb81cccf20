"""The checks of a system without gradient training on one mini task."""

from __future__ import annotations

import functools
import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from harness import registry
from harness.contract.base import NOT_FLIPPED, Broken, Check, Flipped, floor_score, require
from harness.contract.case import Case, of_no_cell
from harness.contract.elsewhere import OTHER_HASHES, elsewhere
from harness.contract.imports import again
from harness.contract.process import require_obeyed, seeds_given
from harness.data.loaded_rows import chosen
from harness.kinds import Estimator, made
from harness.metrics import CLEARLY, above, better, main_score, score
from harness.problems import problem
from harness.registry import ArchitectureEntry, TaskEntry
from harness.saved_models.folder import Part
from harness.saved_models.model import fitted_model
from harness.saved_models.values import packed, unpacked
from harness.task import Row

FEW = 4
"""One of so many training rows stays in train where wrong answers are shown: the others stand in
dev with them, so that they outweigh the right ones for whoever learns from both."""
ALONE = 20
"""About so many rows are asked about alone."""


class Fit(NamedTuple):
    """A fitted system, its answers to the rows that it was asked about, and the seeds that its
    generators were given."""

    estimator: Estimator
    predictions: list[Any]
    seeds: set[str]


@functools.cache
def _rows(task_id: str, split: str) -> Any:
    entry = registry.entry("tasks", task_id)
    return registry.load(entry)(entry).load(split, "mini")


def parts_of(fit: Fit) -> dict[str, Any]:
    """Parts of what a fitted system keeps, by name, to be compared bit by bit; None for one that
    cannot be kept."""
    parts: dict[str, Any] = {}
    for name, value in fit.estimator.fitted_state().items():
        arrays: dict[str, Tensor] = {}
        try:
            plain = packed(value, arrays)
        except TypeError:
            parts[name] = None
        else:
            bits = [
                (each.dtype, each.shape, each.flatten().view(torch.uint8).numpy().tobytes()) for each in arrays.values()
            ]
            parts[name] = plain, bits
    return parts


class FittedCase(Case):
    """A system without gradient training on one mini task.

    It is asked about test, as in a run: the answers of dev are given to it.
    """

    def __init__(self, entry: ArchitectureEntry, task: TaskEntry, settings: dict[str, Any]):
        self.entry, self.task, self.settings = entry, registry.load(task)(task), settings
        self.cls: type[Estimator] = registry.load(entry)
        self.train, self.dev, self.test = (_rows(task.id, split).to_list() for split in ("train", "dev", "test"))
        self.problem = problem(task.type)
        self.hidden = self.problem.input_rows(self.test)

    def of_the_system(self, learning: bool) -> Iterator[tuple[str, Check]]:
        yield "a prediction per row", self.answers
        yield "predictions keep the rules of the problem", self.rules
        yield "same seed, same result", self.determinism
        yield "another seed, other random numbers", self.obedience
        yield "dev changes nothing", self.dev_changes_nothing
        if not self.cls.transductive:
            yield "kept and loaded, it answers the same", self.keeping
            yield "reordering or parting the rows changes nothing", self.order
            yield from self.of_odd_texts()
        if learning:
            if self.can_be_kept and not self.entry.shipped:  # a process costs seconds
                yield "answers the same in another process", self.elsewhere
            yield "beats the floor on its mini task", self.learns
            yield "learns from train alone", self.learns_from_train

    @functools.cached_property
    def first(self) -> Fit:
        return self.fit(self.cls, self.train, self.dev, self.hidden)

    @functools.cached_property
    def repeated(self) -> Fit:
        """The first fit once more, by the plugin's file imported anew, as in a new process."""
        return self.fit(again(self.entry), self.train, self.dev, self.hidden)

    @functools.cached_property
    def second(self) -> Fit:
        """A fit with another seed on few training rows; the others are its dev, with wrong answers
        if the task type has such, and are what it is asked."""
        few, others = self.parts
        dev = others if self.flipped is None else self.flipped.rows
        return self.fit(self.cls, few, dev, self.problem.input_rows(others), seed=1)

    @functools.cached_property
    def parts(self) -> tuple[list[Row], list[Row]]:
        """One of :data:`FEW` training rows, and the others."""
        kept = {*chosen(_rows(self.task.entry.id, "train"), len(self.train) // FEW, seed=0).tolist()}
        few = [row for number, row in enumerate(self.train) if number in kept]
        return few, [row for number, row in enumerate(self.train) if number not in kept]

    @functools.cached_property
    def flipped(self) -> Flipped | None:
        """The others with wrong answers; None where the task type has none."""
        few, others = self.parts
        rows = self.problem.flipped(others)
        return None if rows is None else Flipped(self.task.entry, few, others, rows)

    def fit(self, cls: type[Estimator], train: list[Row], dev: list[Row], asked: list[Row], seed: int = 0) -> Fit:
        """A fresh system that is fitted and asked; a transductive one is given the rows that it
        will be asked about, without their answers."""
        with seeds_given() as seeds:
            estimator = made(cls, self.task.entry.type, seed, self.settings)
            with self.no_answers("fit", "its third argument"):
                estimator.fit(
                    self.problem.learnt_rows(train), self.problem.learnt_rows(dev), asked if cls.transductive else ()
                )
            return Fit(estimator, self.predict(estimator, asked), seeds)

    def predict(self, estimator: Estimator, rows: list[Row]) -> list[Any]:
        with self.no_answers("predict", "it"):
            return estimator.predict(rows)

    @contextmanager
    def no_answers(self, method: str, where: str) -> Iterator[None]:
        """Say of a plugin that asks a row for its answer that there is none."""
        answers = set(self.problem.entry.columns) - set(self.problem.entry.inputs)
        try:
            yield
        except KeyError as error:
            if error.args and error.args[0] in answers:
                raise Broken(
                    f"{method} reads the column {error.args[0]!r}, which is an answer: the rows that {where} is given"
                    f" have {', '.join(self.hidden[0])} alone"
                ) from error
            raise

    def answers(self) -> None:
        estimator, predictions = self.first.estimator, self.first.predictions
        hidden = [name for name in vars(estimator) if callable(getattr(Estimator, name, None))]
        require(not hidden, f"an attribute hides its method {', '.join(hidden)}, which others call; rename it")
        require(len(predictions) == len(self.hidden), f"{len(predictions)} predictions for {len(self.hidden)} rows")
        score(self.task.entry.metrics, predictions, self.test, self.task.label_tree)

    def rules(self) -> None:
        system = self.first.estimator
        self.keeps_the_rules(system, lambda rows: self.predict(system, rows), self.train)

    def determinism(self) -> None:
        require(self.first.predictions == self.repeated.predictions, "two fits with one seed predict differently")

    def obedience(self) -> str:
        require_obeyed(self.first.seeds, self.second.seeds)
        if self.entry.shipped:
            return ""
        other = self.fit(self.cls, self.train, self.dev, self.hidden, seed=1)
        same = parts_of(other) == parts_of(self.first) and other.predictions == self.first.predictions
        return "another seed gives the same system: several seeds of it are one result" if same else ""

    def dev_changes_nothing(self) -> str:
        """Of dev one row alone gives the same system, part by part of what it keeps, but for those
        that it declares; what cannot be kept shows in its answers.

        Nothing is asked of a part that two fits with the same rows do not have in common.
        """
        declared = self.cls.from_dev or ()
        other = self.fit(self.cls, self.train, self.dev[-1:], self.hidden)
        first, repeated, found = (parts_of(fit) for fit in (self.first, self.repeated, other))
        strange = [name for name in declared if name not in first]
        require(not strange, f"from_dev names {', '.join(strange)}, of which fitted_state has nothing")
        changed = [name for name in first if first[name] == repeated.get(name) != found.get(name)]
        if not declared and self.first.predictions == self.repeated.predictions != other.predictions:
            changed.append("answers")
        changed = [name for name in changed if name not in declared]
        told = (
            f"with other rows of dev it has other {', '.join(changed)}; dev is there to choose settings, which are then"
        )
        if changed and self.cls.from_dev is None and not self.entry.shipped:
            return f"{told} to be named in from_dev"
        require(not changed, f"{told} named in from_dev")
        return f"but for {', '.join(declared)}, as declared" if declared else ""

    def order(self) -> None:
        """All rows in another order, and some of them alone; of a question with candidates, which a
        system may compare, all of these."""
        system, answers = self.first.estimator, self.first.predictions
        require(answers[::-1] == self.predict(system, self.hidden[::-1]), "predictions depend on the order of the rows")
        together: dict[str, list[int]] = {}
        for place, row in enumerate(self.hidden):
            together.setdefault(self.problem.cluster(row), []).append(place)
        for places in [*together.values()][:: max(1, len(together) // ALONE)]:
            require(
                self.predict(system, [self.hidden[place] for place in places]) == [answers[place] for place in places],
                f"predictions depend on the other rows: alone, row {self.test[places[0]]['id']} has another one",
            )

    def keeping(self) -> None:
        """A fresh system that is given what the fitted one learnt, as a file holds it.

        It is of the plugin's file imported anew, in which nothing is left of the fit.
        """
        arrays: dict[str, Tensor] = {}
        try:
            state = {name: packed(value, arrays, name) for name, value in self.first.estimator.fitted_state().items()}
        except TypeError as error:
            raise Broken(
                f"what fitted_state gives cannot be kept: {error}; give what it learnt, and restore_fitted"
            ) from error
        restored = made(again(self.entry), self.task.entry.type, 0, self.settings)
        read = json.loads(json.dumps(state, allow_nan=False))
        restored.restore_fitted({name: unpacked(value, arrays) for name, value in read.items()})
        require(
            self.predict(restored, self.hidden) == self.first.predictions,
            "restored by restore_fitted from what fitted_state gave, it predicts otherwise",
        )
        self.can_be_kept = True

    def elsewhere(self) -> None:
        """The fitted system is kept, and asked where texts have other hashes."""
        part = Part(architecture=self.entry.id, version=self.entry.version, settings=self.settings)
        kept = fitted_model(of_no_cell(), self.task.entry.type, part, self.first.estimator, self.train[0])
        with tempfile.TemporaryDirectory(prefix="archbench-check-") as folder:
            kept.write(Path(folder) / "model")
            there = elsewhere("answers_of", Path(folder) / "model", self.hidden)
        require(there == json.loads(json.dumps(self.first.predictions)), f"{OTHER_HASHES} it answers otherwise")

    def accepts(self, change: Callable[[Row], Row]) -> None:
        asked = self.problem.input_rows([change(row) for row in self.train[:8]])
        require(len(self.predict(self.first.estimator, asked)) == len(asked), "a prediction is missing")

    def learns(self) -> None:
        main = self.task.entry.main_metric
        limit = floor_score(self.task.entry, self.train, self.test, self.cls)
        found = main_score(self.task, self.first.predictions, self.test)
        require(
            better(main, found, above(main, limit, CLEARLY)), f"{main} on test is {found:.3f}; the floor is {limit:.3f}"
        )

    def learns_from_train(self) -> str:
        if self.flipped is None:
            return NOT_FLIPPED
        return self.flipped.require_unlearnt(self.flipped.score(self.second.predictions))
