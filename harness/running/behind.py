"""The end of a training that is clearly behind another one's score: the stop of successive halving
(Jamieson and Talwalkar 2016), by intervals instead of ranks."""

from __future__ import annotations

import math

import pytorch_lightning as pl

from harness.metrics import info
from harness.training.fit_module import FitModule

SHARE = 1 / 3
"""Of the epochs of a training: what it has made when it is asked.

Of the 203 trainings of classifiers and matchers whose curves were committed, on 300 dev rows 72
would end by it, of which 2 came into the interval of the task's best in the end. Their pilots, a
tenth of the steps, beside the best pilot would end 92, of which 21 came into it
(``python -m tools.evidence --halving 300``).
"""
COUNTED = ("accuracy",)
"""Metrics that are a share of right rows, so that their chance is known."""


class Behind(Exception):
    """A training whose dev score is clearly below that of another architecture."""


def interval(share: float, count: int) -> tuple[float, float]:
    """95 % interval of a share of so many rows (Wilson 1927)."""
    z = 1.96
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z * math.sqrt(share * (1 - share) / count + (z / (2 * count)) ** 2) / (1 + z * z / count)
    return middle - half, middle + half


class Halving(pl.Callback):
    """Ends a training by :class:`Behind` where, after :data:`SHARE` of its ``epochs``, the interval
    of its best dev score ends below that of the ``rival``, the best score on the same rows."""

    def __init__(self, rival: float, epochs: int):
        self.rival, self.asked_at, self.epochs = rival, math.ceil(SHARE * epochs), epochs

    def on_train_epoch_start(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        assert isinstance(module, FitModule)
        metric, count, told = module.main_metric, len(module.dev_split), ""
        if len(module.curve) == self.asked_at and metric in COUNTED:
            best = max(row[metric] for row in module.curve)
            most, least = interval(best, count)[1], interval(self.rival, count)[0]
            if most < least:
                show = info(metric).format
                told = (
                    f"{show(best)} on dev after {self.asked_at} of {self.epochs} epochs, with chance at most"
                    f" {show(most)}; the best so far has {show(self.rival)}, with chance at least {show(least)}"
                )
        if told := trainer.strategy.broadcast(told):  # all processes end together
            raise Behind(told)
