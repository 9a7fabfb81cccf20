"""The checks of a trained architecture on one mini task."""

from __future__ import annotations

import copy
import dataclasses
import functools
import json
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from harness import registry
from harness.contract.base import (
    NOT_FLIPPED,
    Broken,
    Check,
    Flipped,
    floor,
    floor_score,
    require,
)
from harness.contract.case import Case
from harness.contract.imports import again
from harness.contract.process import require_obeyed, seeds_given
from harness.data.batches import length_buckets
from harness.data.corpus import Corpus, Split
from harness.kept.folder import Origin, Part
from harness.kept.model import TrainedModel, load, trained_model
from harness.kinds import OUTPUTS, Encoder
from harness.metrics import CLEARLY, above, better, is_fraction, perfect, score
from harness.objectives import Objective, Step
from harness.problems.base import Batch, NoTarget
from harness.ragged import Columns
from harness.registry import ArchitectureEntry, TaskEntry
from harness.running import grid
from harness.running.assembly import unwrapped
from harness.settings import TrainingSettings
from harness.task import Row
from harness.training.cost import flops_per_example
from harness.training.lazy_updates import LazyAdam, clip_gradients
from harness.training.model import Model, build, objective_of, predict, predict_with_loss
from harness.training.optimizers import set_gradients
from harness.views.base import View
from harness.views.words_and_characters import with_characters

VECTOR_DIMS = 24
SETTINGS = TrainingSettings()
OVERFIT_STEPS = 400
LEARNING_EPOCHS = 24
NEARLY = 0.98
"""Share of the way from the floor to what can be known by heart, on a scale where none gets
there."""
FIRST = "it can be built, and forward returns what its kind says"
"""Name of the check whose fault all others would repeat."""
DIMENSIONS = {
    "states": 3,
    "vector": 2,
    "class scores": 2,
    "node states": 2,
    "pair vector": 2,
    "pair score": 1,
    "emissions": 3,
    "fact vector": 2,
    "joined states": 3,
}
"""Dimensions of what ``forward`` returns, by the output that it stands for; other outputs are not
one tensor."""


class Steps(NamedTuple):
    """First steps of a training: their losses, and the seeds that generators were given."""

    losses: list[float]
    seeds: set[str]


class Learning(NamedTuple):
    """Main metric of a training on dev: the floor, a score clearly above it, the best one, and the
    last one by the wrong answers that the model was shown."""

    floor: float
    wanted: float
    best: float
    flipped: float


_corpora: dict[tuple[str, ...], Corpus] = {}


def _corpus(task: Any, view: View, gives: str, sees: tuple[str, ...]) -> Corpus:
    key = task.entry.id, json.dumps(view.settings(), sort_keys=True, default=str), gives, *sees
    if key not in _corpora:
        _corpora[key] = Corpus(task, "mini", None, view, gives, sees=sees)
    return _corpora[key]


class TrainedCase(Case):
    """A trained architecture on one mini task."""

    inputs: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    """Sources of further numbers for each word, as a cell has them."""
    dims = VECTOR_DIMS
    """Width of word vectors."""

    def __init__(self, entry: ArchitectureEntry, task: TaskEntry, settings: dict[str, Any]):
        self.entry, self.task, self.given = entry, registry.load(task)(task), settings
        self.regime, wrapped, settings = unwrapped(entry, settings)
        if self.regime is not None:
            settings = grid.hyperparameters(wrapped) | wrapped.tiny
        self.settings = settings
        self.cls: type[Encoder] = registry.load(wrapped)
        view = self.cls.view_for(task, settings)
        if self.inputs:
            view = with_characters(view)
        assert view is not None  # the case is one that the architecture fits
        self.corpus = _corpus(self.task, view, self.cls.output_form(), wrapped.sees)
        self.problem = self.corpus.problem
        self.audio = "audio" in self.corpus.train.rows.column_names
        self.repeatable = True

    def of_the_system(self, learning: bool) -> Iterator[tuple[str, Check]]:
        yield FIRST, self.shape
        yield "finite loss and a prediction per row", self.answers
        yield "predictions keep the rules of the problem", self.rules
        yield "every parameter gets a gradient", self.gradients
        yield "two passes in evaluation are equal", self.repeats
        if self.repeatable:  # otherwise no two passes can be compared
            yield "padding changes nothing", self.padding
            yield "reordering a batch changes nothing", self.order
            yield "reads no answer", self.blind
            yield "save and load", self.round_trip
        yield "same seed, same result", self.determinism
        yield "another seed, other random numbers", self.obedience
        if not self.audio:
            yield from self.of_odd_texts()
        if learning:
            yield "its operations can be counted", self.operations
            yield "overfits 8 examples", self.overfits
            yield "beats the floor on its mini task", self.learns
            yield "learns from train alone", self.learns_from_train

    def model(self, seed: int = 0) -> Model:
        torch.manual_seed(seed)
        return self.built()

    def built(self) -> Model:
        view = self.corpus.view
        model = build(self.cls, self.problem, self.settings, view, self.corpus.target, self.dims, inputs=self.inputs)
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

    def answers(self) -> None:
        model, batch = self.model(), self.corpus.train.collate(self.eight())
        loss = self.loss(model, batch)
        require(loss.dim() == 0 and math.isfinite(loss.item()), f"loss is {loss}")
        model.eval()
        with torch.no_grad():
            predictions = model.predict(batch, self.corpus.train)
        require(len(predictions) == len(batch.rows), f"{len(predictions)} predictions for {len(batch.rows)} rows")
        score(self.task.entry.metrics, predictions, [self.corpus.train.rows[int(i)] for i in batch.rows])

    def rules(self) -> None:
        model = self.model()

        def answered(rows: list[Row]) -> list[Any]:
            columns = self.encoded(dict.fromkeys(self.corpus.fields, rows))
            return predict(model, Split(rows, self.corpus.view, NoTarget(), columns, {}), 64)

        self.keeps_the_rules(self.corpus.target, answered, self.some_rows())

    def shape(self) -> None:
        model, batch = self.model(), self.corpus.train.collate(self.eight())
        returned: list[Any] = []
        model.encoder.register_forward_hook(lambda module, inputs, output: returned.append(output))
        failure = None
        model.eval()
        with torch.no_grad():
            try:
                model(batch.inputs)
                if not returned and self.cls.output_form() == "node states":  # whose head asks for the nodes
                    model.encoder(model.read(batch.inputs)["text"])
            except Exception as error:  # the layers above may raise anything when the shape is wrong
                failure = error
        if returned and isinstance(returned[0], Tensor):
            read = batch.inputs["text"].ids if self.cls.output_form() == "joined states" else batch.rows
            self.require_shape(model, tuple(returned[0].shape), len(read))
        if failure is not None:
            raise failure

    def require_shape(self, model: Model, shape: tuple[int, ...], rows: int) -> None:
        form = "pair score" if getattr(model.encoder, "scores", False) else self.cls.output_form()
        if form not in DIMENSIONS:
            return
        wanted = f"forward returned {shape}; {OUTPUTS[form]} is wanted"
        require(len(shape) == DIMENSIONS[form], f"{wanted}, which has {DIMENSIONS[form]} dimensions")
        require(shape[0] == rows, f"{wanted}, and the batch has {rows} rows")
        size, labels = getattr(model.encoder, "size", None), getattr(self.corpus.target, "labels", None)
        if form == "pair score":
            return
        if size is not None:
            require(shape[-1] == size, f"forward returned {shape}, self.size is {size}")
        elif labels is not None:
            require(shape[-1] == len(labels), f"forward returned {shape}, and there are {len(labels)} labels to score")

    def repeats(self) -> None:
        model, rows, before = self.model(), self.eight(), torch.get_rng_state()
        pairs = list(zip(self.evidence(model, rows), self.evidence(model, rows), strict=True))
        drawn = not torch.equal(torch.get_rng_state(), before)
        self.repeatable = all(
            a.shape == b.shape and torch.allclose(a, b, atol=1e-4, rtol=1e-4, equal_nan=True) for a, b in pairs
        )
        why = (
            "random numbers are drawn there; is dropout on (F.dropout without training=self.training)?"
            if drawn
            else "something enters beside weights and inputs, such as what the pass before left behind"
        )
        require(self.repeatable, f"two passes of one batch in evaluation differ: {why}")

    def gradients(self) -> None:
        model = self.model()
        model.train()
        for rows in np.array_split(np.arange(64), 2):
            self.loss(model, self.corpus.train.collate(rows)).backward()
        excused = tuple(f"encoder.{name}" for name in self.cls.unused)
        trained = ((name, p) for name, p in model.named_parameters() if p.requires_grad and p.numel())
        without = [name for name, p in trained if p.grad is None or not p.grad.any()]
        without = [name for name in without if not name.startswith(excused)] if excused else without
        require(not without, f"no gradient reaches {', '.join(without)}")

    def padding(self) -> None:
        """A row beside one that is longer in one of its inputs alone, and in all."""
        model, train, fields = self.model(), self.corpus.train, tuple(self.corpus.fields)
        lengths = {(field,): self.corpus.view.lengths(train.inputs[field]) for field in fields}
        for longer, units in (lengths | {fields: train.lengths}).items():
            short, long = train.rows[int(units.argmin())], train.rows[int(units.argmax())]
            beside = {field: [short, long if field in longer else short] for field in fields}
            alone = {field: rows[:1] for field, rows in beside.items()}
            one, two = (
                self.evidence(model, np.arange(n), self.asked(rows))[0] for n, rows in ((1, alone), (2, beside))
            )
            self._same(one, two, f"beside a longer {' and '.join(longer)}")

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

    def blind(self) -> None:
        """Rows with and without their answers read the same."""
        model, rows = self.model(), self.some_rows()
        seen, asked = (self.asked(dict.fromkeys(self.corpus.fields, r)) for r in (rows, self.problem.input_rows(rows)))
        every = np.arange(len(rows))
        for a, b in zip(self.evidence(model, every, seen), self.evidence(model, every, asked), strict=True):
            self._same(a, b, "where its rows hold no answers")

    def determinism(self) -> None:
        first, again = self.first_steps, self.anew().steps(seed=3, count=2)
        require(first.losses == again.losses, f"losses {first.losses} and {again.losses} from one seed")

    def obedience(self) -> None:
        require_obeyed(self.first_steps.seeds, self.steps(seed=4, count=1).seeds)

    @functools.cached_property
    def first_steps(self) -> Steps:
        return self.steps(seed=3, count=2)

    def steps(self, seed: int, count: int) -> Steps:
        """The first steps of a fresh model."""
        torch.manual_seed(seed)
        with seeds_given() as seeds:
            steps = self.train(self.built(), self.corpus.train, [self.eight()] * count, lr=0.01)
            return Steps([loss.item() for loss in steps], seeds)

    def anew(self) -> TrainedCase:
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

    def round_trip(self) -> None:
        """A model is kept in a folder, and loaded with what the folder holds alone."""
        saved, rows = self.model(seed=0), self.some_rows()
        with tempfile.TemporaryDirectory(prefix="archbench-check-") as folder:
            self.kept(saved).write(Path(folder) / "model")
            loaded = load(Path(folder) / "model")
        assert isinstance(loaded, TrainedModel)
        split = loaded.split(self.problem.input_rows(rows))
        before, after = (self.evidence(model, np.arange(len(rows)), split) for model in (saved, loaded.model))
        for a, b in zip(before, after, strict=True):
            self._same(a, b, "after loading the saved state")

    def kept(self, model: Model) -> TrainedModel:
        """A model of this case as a cell keeps it."""
        wrapped = registry.entry("architectures", self.given["wraps"]) if self.regime is not None else self.entry
        parts = [
            Part(architecture=entry.id, version=entry.version, settings=settings)
            for entry, settings in ((wrapped, self.settings), (self.entry, self.given))
        ]
        return trained_model(
            Origin(key="", cell={"hyperparameters": {"inputs": dict(self.inputs)}}, data={}, predictions=None),
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

    def accepts(self, change: Callable[[Row], Row]) -> None:
        rows = [change(row) for row in self.some_rows()]
        small = self.labelled(self.corpus.train.rows.from_list(rows), rows)
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
        main = self.problem.learnt_by_heart or self.task.entry.main_metric
        goal = perfect(main)
        if not is_fraction(main):
            known = self.problem.by_heart(gold, model.encoder)
            low, high = (score([main], p, gold)[main] for p in (floor(self.task.entry, gold, gold), known))
            goal = low + NEARLY * (high - low)
        reached = math.nan
        for step, _ in enumerate(self.train(model, split, [rows] * OVERFIT_STEPS, lr=0.005), start=1):
            if step % 20 == 0:
                model.eval()
                with torch.no_grad():
                    reached = score([main], model.predict(split.collate(rows), split), gold)[main]
                model.train()
                if better(main, reached, goal) or abs(reached - goal) < 1e-6:
                    return
        raise Broken(
            f"{main} on its {len(rows)} training examples is {reached:.3f} after {OVERFIT_STEPS} steps, not {goal:.3g}"
        )

    def learns(self) -> None:
        found = self.learning
        require(
            better(self.task.entry.main_metric, found.best, found.wanted),
            f"{self.task.entry.main_metric} on dev is at best {found.best:.3f} after {LEARNING_EPOCHS} epochs; the"
            f" floor is {found.floor:.3f}",
        )

    def learns_from_train(self) -> str:
        return NOT_FLIPPED if self.flipped is None else self.flipped.require_unlearnt(self.learning.flipped)

    @functools.cached_property
    def flipped(self) -> Flipped | None:
        """Dev with wrong answers; None where the task type has none."""
        dev = self.corpus.dev.rows.to_list()
        rows = self.problem.flipped(dev)
        return None if rows is None else Flipped(self.task.entry, self.corpus.train.rows.to_list(), dev, rows)

    @functools.cached_property
    def learning(self) -> Learning:
        """A training until dev is clearly above the floor.

        The answers of dev, which the model meets in its loss there, are wrong. One that learns from
        train alone gives the right ones, and fewer of the wrong ones the more it learns.
        """
        corpus, main, flipped = self.corpus, self.task.entry.main_metric, self.flipped
        train, dev = corpus.train.rows.to_list(), corpus.dev.rows.to_list()
        limit = floor_score(self.task.entry, train, dev)
        wanted = above(main, limit, CLEARLY)
        shown = corpus.dev
        if flipped is not None:
            shown = dataclasses.replace(shown, targets=corpus.target.encode(flipped.rows, corpus.view))
        model, best, followed = self.model(), limit, math.nan
        batches = self._epochs()
        steps = self.train(model, corpus.train, [rows for epoch in batches for rows in epoch], lr=0.003)
        for number, _ in enumerate(steps, start=1):
            if number % len(batches[0]) == 0:
                predictions, _ = predict_with_loss(model, shown, 64)
                found = score([main], predictions, dev)[main]
                best = found if better(main, found, best) else best
                if better(main, best, wanted):
                    if flipped is None:
                        break
                    followed = flipped.score(predict(model, shown, 64))  # once more, after it met their answers
                    if not better(main, followed, flipped.limit):
                        break
                model.train()
        return Learning(limit, wanted, best, followed)

    def _epochs(self) -> list[list[np.ndarray]]:
        split = self.corpus.train
        groups = split.groups if getattr(self.cls, "whole_groups", False) else None
        epochs = [
            length_buckets(split.padded_lengths, 16, np.random.default_rng([0, epoch]), groups)
            for epoch in range(LEARNING_EPOCHS)
        ]
        fewest = min(map(len, epochs))
        return [epoch[:fewest] for epoch in epochs]
