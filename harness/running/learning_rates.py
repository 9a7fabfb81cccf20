"""The search for a learning rate by short pilots, which also tell early that a training would pass
its limit of time."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytorch_lightning as pl

from harness.metrics import CLEARLY, above, better
from harness.running.assembly import Assembly
from harness.running.usage import clocks, since
from harness.running.worker_settings import Settings
from harness.settings import PILOT_SHARE
from harness.training.fit import fit
from harness.training.fit_module import Diverged, FitModule

ASKED_EVERY_S = 1.0
"""Seconds after which a pilot that goes on is asked for its time again."""


class TooSlow(Exception):
    """A cell whose training will pass a limit of time, told by its first steps."""


class Pilot(NamedTuple):
    """Result of a pilot, whose model would take as much memory as the cell's: what rates are
    compared by, and score and loss on dev."""

    selection: float
    score: float
    loss: float


def try_rates(assembly: Assembly, settings: Settings, folder: Path) -> dict[float, Pilot | None]:
    """A short pilot at each learning rate (None: it diverged, or there is only one rate and none
    was run).

    :class:`TooSlow` is raised where one pilot shows that the training will pass a limit of time.
    """
    rates = assembly.training.learning_rates
    tried: dict[float, Pilot | None] = dict.fromkeys(rates)
    for lr in rates if len(rates) > 1 else ():
        pilot = assembly.training_of(assembly.model(assembly.cell.seed), lr)
        pilot.dev_split = assembly.pilot_dev
        share = PILOT_SHARE * pilot.settings.epochs / assembly.most_epochs(pilot)
        began = clocks()
        if assembly.cell.devices == 1:  # several processes would have to end together
            pilot.after_step = _asked(began, share, settings)
        try:
            fit(pilot, folder, assembly.cell.devices, settings.strategy, assembly.cell.precision, 1, pilot=True)
            loss = pilot.curve[-1]["dev_loss"]
            if loss is not None:  # else it is not finite; a pilot may be too short for its training loss to show it
                tried[lr] = Pilot(pilot.selection, pilot.curve[-1][pilot.main_metric], loss)
        except Diverged as failure:
            print(failure)
        if told := _too_long(began, share, settings):
            raise TooSlow(f"a pilot, {share:.0%} of the steps, took {told}")
    return tried


def _asked(began: tuple[float, float], share: float, settings: Settings) -> Callable[[int], None]:
    """A question after each step of a pilot, which makes a share of all steps: whether it took
    longer than all of it may. Then its end need not be awaited."""
    last = began[0]

    def after_step(steps: int) -> None:
        nonlocal last
        if (now := time.perf_counter()) - last < ASKED_EVERY_S:
            return
        last = now
        if told := _too_long(began, share, settings):
            raise TooSlow(f"the first {steps} steps of a pilot, which makes {share:.0%} of them, took {told}")

    return after_step


def best_rate(tried: dict[float, Pilot | None], assembly: Assembly) -> float:
    """The rate whose pilot did best on dev; the first one when there is nothing to compare.

    Where no score is clearly above the floor, the scores tell nothing yet: then it is the smallest
    loss. A pilot is a tenth of the steps, and a point over the floor is an accident of few rows.
    """
    pilots = {lr: pilot for lr, pilot in tried.items() if pilot is not None}
    if not pilots:
        return next(iter(tried))
    main = assembly.task.entry.main_metric
    clear = above(main, assembly.pilot_floor, CLEARLY)
    if any(better(main, pilot.score, clear) for pilot in pilots.values()):
        return max(pilots, key=lambda lr: pilots[lr].selection)
    return min(pilots, key=lambda lr: pilots[lr].loss)


class Foresight(pl.Callback):
    """Ends a training that has no pilots, since there is one rate, once :data:`PILOT_SHARE` of the
    least that it takes shows that it will pass a limit of time: the epochs until its patience ends
    where the first one stays the best."""

    def __init__(self, settings: Settings, epochs: int):
        self.settings, self.epochs, self.steps = settings, epochs, 0

    def on_train_start(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        assert isinstance(module, FitModule)
        recipe, of_epoch = module.settings, module.steps_of_epoch(trainer.world_size)
        patient = max((1 + recipe.patience) * of_epoch, -(-recipe.min_steps // trainer.world_size))
        self.least = min(patient, self.epochs * of_epoch)
        self.asked = trainer.current_epoch > 0
        self.began = clocks()

    def on_train_batch_end(
        self, trainer: pl.Trainer, module: pl.LightningModule, outputs: Any, chunk: Any, index: int
    ) -> None:
        self.steps += len(chunk)
        if not self.asked and self.steps >= PILOT_SHARE * self.least:
            self.asked, share = True, self.steps / self.least
            told = _too_long(self.began, share, self.settings)
            if told := trainer.strategy.broadcast(told):  # all processes end together
                raise TooSlow(f"{share:.0%} of the least number of steps took {told}")


def _too_long(began: tuple[float, float], share: float, settings: Settings) -> str:
    """Words on a limit of time that all steps will pass, where this share of them was made since
    these :func:`~harness.running.usage.clocks`; empty where they keep to the limits."""
    for spent, limit, words in settings.time_limits(since(began)):
        if spent > share * limit:
            return f"{spent:.0f} s: all of them would take longer than {words}"
    return ""
