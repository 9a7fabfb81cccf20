"""Contract of every plugin: the checks of ``archbench check NAME``, run on the mini corpora
with the plugin's ``tiny`` sizes."""

from __future__ import annotations

import functools
import importlib.util
import json
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from harness import registry
from harness.data.corpus import Corpus, Split
from harness.kinds import Estimator
from harness.metrics import better, score
from harness.objectives import Objective, Step
from harness.problems import problem
from harness.problems.base import Batch
from harness.registry import Entry
from harness.running import grid
from harness.running.worker import unwrapped
from harness.settings import TrainingSettings
from harness.task import Row
from harness.training.cost import flops_per_example
from harness.training.lazy_updates import LazyAdam, clip_gradients
from harness.training.model import Model, build, objective_of, predict
from harness.training.optimizers import set_gradients
from harness.views.base import View

VECTOR_DIMS = 24
SETTINGS = TrainingSettings()
OVERFIT_STEPS = 400
LEARNING_EPOCHS = 12
CLEARLY = 0.05
"""Margin over the floor that a plugin's main metric must be on the mini task it learns."""


@dataclass(frozen=True)
class Result:
    """One check: its name, whether it passed, and what was found when it did not."""

    name: str
    passed: bool
    message: str = ""


class Broken(AssertionError):
    """A check that did not hold."""


def require(condition: bool, message: str) -> None:
    """Raise :class:`Broken` with the message unless the condition holds."""
    if not condition:
        raise Broken(message)


def check(entry: Entry) -> list[Result]:
    """Run every check that applies to an architecture; a crash in one is its failure, and the
    others still run."""
    results = [_run("import changes no global state", lambda: _import(entry))]
    if not results[0].passed:
        return results
    fitting = list(cases(entry))
    if not fitting:
        return [*results, Result("fits a task", False, f"kind {entry.kind} fits none of the registered tasks")]
    for number, case in enumerate(fitting):
        for name, body in case.checks(learning=number == 0):
            results.append(_run(f"{case.task.entry.id}: {name}", body))
    return results


def _run(name: str, body: Callable[[], None]) -> Result:
    try:
        body()
    except Broken as found:
        return Result(name, False, str(found))
    except Exception as error:
        return Result(name, False, f"{type(error).__name__}: {error}")
    return Result(name, True)


def _import(entry: Entry) -> None:
    registry.load(entry)  # what it imports for the first time is not its own doing
    before = (
        torch.get_default_dtype(),
        torch.get_num_threads(),
        torch.is_grad_enabled(),
        torch.get_rng_state(),
        np.random.get_state()[1],
    )
    spec = importlib.util.spec_from_file_location("archbench_contract_import", entry.file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # a dataclass looks its annotations up there
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[spec.name]
    after = (
        torch.get_default_dtype(),
        torch.get_num_threads(),
        torch.is_grad_enabled(),
        torch.get_rng_state(),
        np.random.get_state()[1],
    )
    require(
        before[:3] == after[:3], f"default dtype, threads or gradient mode changed from {before[:3]} to {after[:3]}"
    )
    require(
        torch.equal(before[3], after[3]) and np.array_equal(before[4], after[4]), "a global random generator was used"
    )


def cases(entry: Entry) -> Iterator[_Case | _EstimatorCase]:
    """One case per task type that the architecture fits, each on the first task of that type."""
    settings = grid.hyperparameters(entry) | entry.tiny
    seen: set[str] = set()
    for task in registry.entries("tasks").values():
        if task.type not in seen and grid.reason_to_skip(entry, task, settings) is None:
            seen.add(task.type)
            yield (_EstimatorCase if issubclass(registry.load(entry), Estimator) else _Case)(entry, task, settings)


@functools.cache
def _rows(task_id: str, split: str) -> Any:
    entry = registry.entry("tasks", task_id)
    return registry.load(entry)(entry).load(split, "mini")


_corpora: dict[tuple[str, str, str], Corpus] = {}


def _corpus(task: Any, view: View, gives: str) -> Corpus:
    key = task.entry.id, json.dumps(view.settings(), sort_keys=True, default=str), gives
    if key not in _corpora:
        _corpora[key] = Corpus(task, "mini", None, view, gives)
    return _corpora[key]


def floor(task: Entry, train: list[Row], rows: list[Row]) -> list[Any]:
    """Predictions without a model that an architecture must beat on a task."""
    return next(iter(problem(task.type).floors(train, rows).values()))


def shortened(row: Row, task_type: str) -> Row:
    """The row with one word in each text, and an answer that fits it."""
    return problem(task_type).shortened(row)


def with_unknown_words(row: Row) -> Row:
    """The row with every word of its texts replaced by one that no training text has.

    An older form of :meth:`harness.problems.base.Problem.with_unknown_words`: the columns tell the
    task type.
    """
    types = registry.entries("problems").values()
    return problem(next(entry.id for entry in types if set(entry.columns) <= set(row))).with_unknown_words(row)


class _Case:
    """The checks of a trained architecture on one mini task."""

    def __init__(self, entry: Entry, task: Entry, settings: dict[str, Any]):
        self.entry, self.task = entry, registry.load(task)(task)
        self.regime, wrapped, settings = unwrapped(entry, settings)
        if self.regime is not None:
            settings = grid.hyperparameters(wrapped) | wrapped.tiny
        self.cls, self.settings = registry.load(wrapped), settings
        self.corpus = _corpus(self.task, self.cls.view_for(task, settings), self.cls.output_form())
        self.problem = self.corpus.problem
        self.audio = "audio" in self.corpus.train.rows.column_names

    def checks(self, learning: bool) -> Iterator[tuple[str, Callable[[], None]]]:
        yield "finite loss and a prediction per row", self.answers
        yield "every parameter gets a gradient", self.gradients
        yield "padding changes nothing", self.padding
        yield "reordering a batch changes nothing", self.order
        yield "same seed, same result", self.determinism
        yield "save and load", self.round_trip
        if not self.audio:
            yield (
                "a text of length 1",
                lambda: self.accepts([self.problem.shortened(row) for row in self.some_rows()]),
            )
            yield (
                "a text of unknown words",
                lambda: self.accepts([self.problem.with_unknown_words(row) for row in self.some_rows()]),
            )
        if learning:
            yield "its operations can be counted", self.operations
            yield "overfits 8 examples", self.overfits
            yield "beats the floor on its mini task", self.learns

    def model(self, seed: int = 0) -> Model:
        torch.manual_seed(seed)
        view = self.corpus.view
        model = build(self.cls, self.problem, self.settings, view, self.corpus.target, VECTOR_DIMS)
        if self.regime is not None:
            self.regime.apply(model, view)
        return model

    def loss(self, model: Model, batch: Batch) -> Tensor:
        return self.losses(model, objective_of(model, SETTINGS, self.regime), batch)["loss"]

    def losses(self, model: Model, objective: Objective, batch: Batch) -> dict[str, Tensor]:
        """Losses of a labelled batch, and of the same rows without labels where the objective asks
        for some."""
        batches = {"labelled": batch}
        if "unlabelled" in objective.streams:
            batches["unlabelled"] = self.corpus.unlabelled.collate(batch.rows)
        return objective.losses(model, Step(batches, progress=0.5))

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
        split = split or self.corpus.train
        model.eval()
        with torch.no_grad():
            inputs = model.read(split.collate(np.asarray(rows)).inputs)
            return [
                numbers.clone() for numbers in model.head.evidence(model.encoder, model.head(model.encoder, inputs))
            ]

    def answers(self) -> None:
        model, batch = self.model(), self.corpus.train.collate(self.eight())
        loss = self.loss(model, batch)
        require(loss.dim() == 0 and math.isfinite(loss.item()), f"loss is {loss}")
        model.eval()
        with torch.no_grad():
            predictions = model.predict(batch, self.corpus.train)
        require(len(predictions) == len(batch.rows), f"{len(predictions)} predictions for {len(batch.rows)} rows")
        score(self.task.entry.metrics, predictions, [self.corpus.train.rows[int(i)] for i in batch.rows])

    def gradients(self) -> None:
        model = self.model()
        model.train()
        for rows in np.array_split(np.arange(64), 2):
            self.loss(model, self.corpus.train.collate(rows)).backward()
        excused = tuple(f"encoder.{name}" for name in self.cls.unused)
        without = [n for n, p in model.named_parameters() if p.requires_grad and (p.grad is None or not p.grad.any())]
        without = [name for name in without if not name.startswith(excused)] if excused else without
        require(not without, f"no gradient reaches {', '.join(without)}")

    def padding(self) -> None:
        lengths = self.corpus.train.lengths
        short, long = int(lengths.argmin()), int(lengths.argmax())
        model = self.model()
        self._same(
            self.evidence(model, np.array([short]))[0],
            self.evidence(model, np.array([short, long]))[0],
            "beside a longer text",
        )

    def order(self) -> None:
        model, rows = self.model(), self.eight()
        for straight, turned in zip(
            self.evidence(model, rows), reversed(self.evidence(model, rows[::-1].copy())), strict=True
        ):
            self._same(straight, turned, "in another order")

    @staticmethod
    def _same(a: Tensor, b: Tensor, where: str) -> None:
        require(a.shape == b.shape, f"{where} the output has shape {tuple(b.shape)}, alone {tuple(a.shape)}")
        require(
            torch.allclose(a, b, atol=1e-4, rtol=1e-4),
            f"{where} the output differs by up to {(a - b).abs().max().item():.2g}",
        )

    def determinism(self) -> None:
        losses = []
        for _ in range(2):
            model = self.model(seed=3)
            steps = self.train(model, self.corpus.train, [self.eight()] * 2, lr=0.01)
            losses.append([loss.item() for loss in steps])
        require(losses[0] == losses[1], f"losses {losses[0]} and {losses[1]} from one seed")

    def round_trip(self) -> None:
        saved, other = self.model(seed=0), self.model(seed=1)
        other.load_state_dict(saved.state_dict())
        for a, b in zip(self.evidence(saved, self.eight()), self.evidence(other, self.eight()), strict=True):
            self._same(a, b, "after loading the saved state")

    def accepts(self, rows: list[Row]) -> None:
        corpus, split = self.corpus, self.corpus.train
        inputs = {field: corpus.view.encode([read(row) for row in rows]) for field, read in corpus.fields.items()}
        small = Split(
            split.rows.from_list(rows), corpus.view, corpus.target, inputs, corpus.target.encode(rows, corpus.view)
        )
        model, batch = self.model(), small.collate(np.arange(len(rows)))
        require(math.isfinite(self.loss(model, batch).item()), "the loss is not finite")
        model.eval()
        with torch.no_grad():
            require(len(model.predict(batch, small)) == len(rows), "a prediction is missing")

    def train(self, model: Model, split: Split, batches: list[np.ndarray], lr: float) -> Iterator[Tensor]:
        """Losses of one Adam step per batch."""
        objective = objective_of(model, SETTINGS, self.regime)
        trained = objective.trained(model)
        optimizers = [LazyAdam(parameters, lr=lr) for parameters in trained.values()]
        model.train()
        objective.train()
        for rows in batches:
            for optimizer in optimizers:
                optimizer.zero_grad()
            losses = self.losses(model, objective, split.collate(rows))
            set_gradients(losses, trained)
            for optimizer, parameters in zip(optimizers, trained.values(), strict=True):
                clip_gradients(parameters, 5.0)
                optimizer.step()
            model.head.constrain(model.encoder)
            yield losses["loss"].detach()

    def operations(self) -> None:
        counted = flops_per_example(self.model(), self.corpus.train.collate(self.eight()))
        require(
            bool(counted), "neither a forward pass nor the loss does anything that torch's counter of operations knows"
        )

    def overfits(self) -> None:
        model, rows, split = self.model(), self.eight(), self.corpus.train
        gold = [split.rows[int(i)] for i in rows]
        main = self.task.entry.main_metric
        perfect = 0.0 if better(main, 0.0, 1.0) else 1.0
        reached = math.nan
        for step, _ in enumerate(self.train(model, split, [rows] * OVERFIT_STEPS, lr=0.005), start=1):
            if step % 20 == 0:
                model.eval()
                with torch.no_grad():
                    reached = score([main], model.predict(split.collate(rows), split), gold)[main]
                model.train()
                if abs(reached - perfect) < 1e-6:
                    return
        raise Broken(
            f"{main} on its {len(rows)} training examples is {reached:.3f} after {OVERFIT_STEPS} steps, not {perfect}"
        )

    def learns(self) -> None:
        corpus, main = self.corpus, self.task.entry.main_metric
        dev = corpus.dev.rows.to_list()
        limit = score([main], floor(self.task.entry, corpus.train.rows.to_list(), dev), dev)[main]
        wanted = limit - CLEARLY if better(main, 0.0, 1.0) else limit + CLEARLY
        model, best = self.model(), limit
        batches = self._epochs()
        for number, _ in enumerate(
            self.train(model, corpus.train, [rows for epoch in batches for rows in epoch], lr=0.003), start=1
        ):
            if number % len(batches[0]) == 0:
                found = score([main], predict(model, corpus.dev, 64), dev)[main]
                best = found if better(main, found, best) else best
                if better(main, best, wanted):
                    return
                model.train()
        raise Broken(f"{main} on dev is at best {best:.3f} after {LEARNING_EPOCHS} epochs; the floor is {limit:.3f}")

    def _epochs(self) -> list[list[np.ndarray]]:
        from harness.data.batches import length_buckets

        split = self.corpus.train
        groups = split.groups if getattr(self.cls, "whole_groups", False) else None
        epochs = [
            length_buckets(split.padded_lengths, 16, np.random.default_rng([0, epoch]), groups)
            for epoch in range(LEARNING_EPOCHS)
        ]
        fewest = min(map(len, epochs))
        return [epoch[:fewest] for epoch in epochs]


class _EstimatorCase:
    """The checks of a system without gradient training on one mini task."""

    def __init__(self, entry: Entry, task: Entry, settings: dict[str, Any]):
        self.task, self.settings = registry.load(task)(task), settings
        self.cls: type[Estimator] = registry.load(entry)
        self.train, self.dev = _rows(task.id, "train").to_list(), _rows(task.id, "dev").to_list()
        self.problem = problem(task.type)
        self.hidden = self.problem.input_rows(self.dev)

    def checks(self, learning: bool) -> Iterator[tuple[str, Callable[[], None]]]:
        yield "a prediction per row", self.answers
        yield "same seed, same result", self.determinism
        if not self.cls.transductive:
            yield "reordering the rows changes nothing", self.order
            yield (
                "a text of length 1",
                lambda: self.accepts([self.problem.shortened(row) for row in self.train[:8]]),
            )
            yield (
                "a text of unknown words",
                lambda: self.accepts([self.problem.with_unknown_words(row) for row in self.train[:8]]),
            )
        if learning:
            yield "beats the floor on its mini task", self.learns

    @functools.cached_property
    def fitted(self) -> Estimator:
        return self.fit()

    def fit(self) -> Estimator:
        estimator = self.cls(seed=0, **self.settings)
        estimator.fit(self.train, self.dev, self.hidden if self.cls.transductive else ())
        return estimator

    def answers(self) -> None:
        predictions = self.fitted.predict(self.hidden)
        require(len(predictions) == len(self.hidden), f"{len(predictions)} predictions for {len(self.hidden)} rows")
        score(self.task.entry.metrics, predictions, self.dev)

    def determinism(self) -> None:
        first, second = self.fitted.predict(self.hidden), self.fit().predict(self.hidden)
        require(first == second, "two fits with one seed predict differently")

    def order(self) -> None:
        require(
            self.fitted.predict(self.hidden)[::-1] == self.fitted.predict(self.hidden[::-1]),
            "predictions depend on the order of the rows",
        )

    def accepts(self, rows: list[Row]) -> None:
        require(len(self.fitted.predict(self.problem.input_rows(rows))) == len(rows), "a prediction is missing")

    def learns(self) -> None:
        main = self.task.entry.main_metric
        limit = score([main], floor(self.task.entry, self.train, self.dev), self.dev)[main]
        found = score([main], self.fitted.predict(self.hidden), self.dev)[main]
        wanted = limit - CLEARLY if better(main, 0.0, 1.0) else limit + CLEARLY
        require(better(main, found, wanted), f"{main} on dev is {found:.3f}; the floor is {limit:.3f}")
