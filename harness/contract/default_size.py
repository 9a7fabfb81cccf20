"""The check that an architecture learns its mini task as it is shipped: default sizes, own recipe.

The contract (:mod:`harness.contract`) builds ``tiny`` models. An architecture that needs its depth
to fail, such as one whose signal dies in the fifth layer, passes it.
"""

from __future__ import annotations

import dataclasses
import math
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from pytorch_lightning import LightningModule, Trainer
from pytorch_lightning.callbacks import Checkpoint

from harness import registry
from harness.contract.base import Result, best_floor, require, run
from harness.errors import ArchbenchError, UsageError
from harness.kinds import Estimator, made
from harness.metrics import CLEARLY, above, better, main_score
from harness.problems import problem
from harness.records import Cell
from harness.registry import ArchitectureEntry, TaskEntry
from harness.running import grid
from harness.running.assembly import Assembly, constructor_settings
from harness.running.worker_settings import Settings
from harness.settings import TrainingSettings
from harness.task import Row
from harness.training.fit import fit
from harness.training.fit_module import Diverged, FitModule
from harness.training.model import predict

FAR = 2 * CLEARLY
"""Distance from the floor of dev with which a training ends, if no other is asked for: the best of
many epochs is far from the floor by luck more often than test is."""

PASSES = 300
"""Passes that a training may take; a network's schedule is laid over them. Those that recipes give
are too few on corpora of a few hundred texts."""


@dataclass(frozen=True)
class Learned:
    """The result of the check for one architecture.

    ``word`` is ``learns``, ``chance`` or ``diverged``. ``dev`` is the best epoch's score and
    ``test`` the same epoch's, which no choice depends on; ``floor`` is that of ``test``.
    ``seconds`` are those of the processor.
    """

    architecture: str
    task: str
    metric: str
    word: str
    floor: float
    dev: float
    test: float
    epochs: int
    seconds: float


def cell_of(entry: ArchitectureEntry, tasks: Sequence[TaskEntry]) -> Cell:
    """The cell of an architecture on the first of these tasks that it fits, by its own recipe;
    :class:`~harness.errors.UsageError` gives the reason where there is none."""
    planned = grid.plan([entry], tasks, tier="mini", protocol="paper", seeds=[0])
    fitting = [item.cell for item in planned if item.reason is None]
    if not fitting:
        raise UsageError(f"{entry.id} fits no task: {planned[0].reason}")
    return fitting[0]


def learned(
    entry: ArchitectureEntry, seconds: float = 120.0, task: TaskEntry | None = None, far: float = FAR
) -> Learned:
    """Train an architecture on a mini task, if none is given the first that it fits, until dev is
    ``far`` above the floor or the time is over, and score test. An epoch is never cut.

    ``seconds`` are those of the processor, so that what else the machine does changes nothing.
    """
    began = time.process_time()
    cell = cell_of(entry, [task] if task else registry.tasks_to_check_on())
    task = registry.entry("tasks", cell.task)
    adapter = registry.load(task)(task)
    train, dev, test = (adapter.load(split, "mini").to_list() for split in ("train", "dev", "test"))
    main, cls = task.main_metric, registry.load(entry)
    floors = [best_floor(task, train, rows, cls) for rows in (dev, test)]
    with tempfile.TemporaryDirectory(prefix="archbench-check-") as folder:
        goal, ends = above(main, floors[0], far), began + seconds
        if issubclass(cls, Estimator):
            scores, epochs = _fitted(cell, main, goal, (train, dev, test), ends)
            finite = True
        else:
            scores, epochs, finite = _trained(cell, Path(folder), main, goal, test, ends)
    learns = all(better(main, found, above(main, limit, CLEARLY)) for found, limit in zip(scores, floors, strict=True))
    word = "learns" if learns else "chance" if finite else "diverged"
    return Learned(entry.id, task.id, main, word, floors[1], *scores, epochs, time.process_time() - began)


def as_shipped(entry: ArchitectureEntry) -> Result:
    """The check as one of those of ``archbench check``."""

    def learns() -> str:
        found = learned(entry)
        scores = f"{found.metric} {found.dev:.3f} on dev and {found.test:.3f} on test"
        told = f"{found.task}: {found.word}, {scores}, where the floor is {found.floor:.3f}"
        require(found.word == "learns", told)
        return told

    return run("learns its mini task at its default size", learns, ArchbenchError)


def _fitted(
    cell: Cell, metric: str, goal: float, splits: tuple[list[Row], list[Row], list[Row]], ends: float
) -> tuple[tuple[float, float], int]:
    """Scores on dev and test of a system that trains by itself, and its passes over the texts, 1
    for one that makes none. One that makes some is fitted anew with four times as many, as long as
    it misses the goal and there is time for that."""
    train, dev, test = splits
    cls = registry.load(registry.entry("architectures", cell.architecture))
    task = registry.entry("tasks", cell.task)
    type, adapter = task.type, registry.load(task)(task)
    asked, settings = problem(type), constructor_settings(cell)
    hidden, learnt = asked.input_rows, asked.learnt_rows
    while True:
        began = time.process_time()
        estimator = made(cls, type, cell.seed, settings)
        estimator.fit(learnt(train), learnt(dev), hidden(test) if estimator.transductive else ())
        on_dev, on_test = (main_score(adapter, estimator.predict(hidden(rows)), rows) for rows in (dev, test))
        now, passes = time.process_time(), settings.get("epochs", 1)
        more = min(4 * passes, PASSES)
        if "epochs" not in settings or better(metric, on_dev, goal) or more <= passes or now + 4 * (now - began) > ends:
            return (on_dev, on_test), passes
        settings |= {"epochs": more}


def _trained(
    cell: Cell, folder: Path, metric: str, goal: float, test: list[Row], ends: float
) -> tuple[tuple[float, float], int, bool]:
    """Scores on dev and test of the best epoch, the number of epochs, and True if the loss stayed
    finite."""
    settings = Settings(folder, None, (), torch.get_num_threads(), None, None, folder)
    assembly = Assembly(cell, settings)
    recipe = assembly.training
    assembly.training = laid_over_passes(recipe)
    training = assembly.training_of(assembly.model(cell.seed), recipe.learning_rates[0])
    finite = True
    try:
        fit(training, folder, 1, "auto", "32", PASSES, callbacks=[_Ends(goal, ends)])
    except Diverged:
        finite = False
        if training.best:
            training.load_state_dict(training.best["weights"])
    predictions = predict(training.model, assembly.corpus.test(), recipe.batch_size)
    best = training.curve[training.best["epoch"] - 1][metric] if training.best else math.nan
    return (best, main_score(assembly.task, predictions, test)), len(training.curve), finite


def laid_over_passes(recipe: TrainingSettings) -> TrainingSettings:
    """A recipe over :data:`PASSES` in place of its epochs.

    An epoch of the recipe is so many passes here, of a corpus that is so much smaller. Left as they
    are, steps of the rate would come every few batches and stop a training that has hardly begun.
    ``min_steps`` would stretch them too, but over epochs of many passes: dev, whose score ends the
    training, would be asked too seldom for the time.
    """
    stretch = PASSES / recipe.epochs
    return dataclasses.replace(
        recipe,
        epochs=PASSES,
        patience=PASSES,
        step_start=recipe.step_start * stretch,
        step_epochs=recipe.step_epochs * stretch,
        decay=recipe.decay / stretch,
        factor=recipe.factor ** (1 / stretch) if recipe.lr_schedule == "plateau" else recipe.factor,
    )


class _Ends(Checkpoint):
    """Ends a training with the first epoch whose dev score is better than a goal, or with the time.

    Lightning calls checkpoints, and them alone, when the model's own end of an epoch is over.
    """

    def __init__(self, goal: float, ends: float):
        self.goal, self.ends = goal, ends

    def on_train_epoch_end(self, trainer: Trainer, module: LightningModule) -> None:
        assert isinstance(module, FitModule)
        main = module.main_metric
        reached = better(main, module.curve[-1][main], self.goal)
        if reached or time.process_time() > self.ends:
            trainer.should_stop = True
