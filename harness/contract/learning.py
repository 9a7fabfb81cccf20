"""The checks of an architecture that need a training: it can learn eight examples by heart, and
learns its mini task from train alone."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from typing import NamedTuple

import numpy as np
import torch

from harness.contract.base import NOT_FLIPPED, Broken, Flipped, floor_score, require
from harness.contract.model_case import ModelCase
from harness.data.batches import length_buckets
from harness.metrics import CLEARLY, above, better, is_fraction, main_score, perfect, score
from harness.training.cost import flops_per_example
from harness.training.model import predict, predict_with_loss

OVERFIT_STEPS = 400
OVERFIT_RATES = (0.005, 0.001)
"""Learning rates of so many steps each: where the first one is too high to end (CTC, a recurrent
network behind many convolutions), the second one is not."""
LEARNING_EPOCHS = 24
NEARLY = 0.98
"""Share of the way from the floor to what can be known by heart, on a scale where none gets
there."""


class Learning(NamedTuple):
    """Main metric of a training on dev: the floor, a score clearly above it, the best one, and the
    last one by the wrong answers that the model was shown."""

    floor: float
    wanted: float
    best: float
    flipped: float


class LearningCase(ModelCase):
    """The checks that need a training, of an architecture on one mini task."""

    def operations(self) -> None:
        counted = flops_per_example(self.model(), [self.corpus.train.collate(self.eight())])
        require(
            bool(counted), "neither a forward pass nor the loss does anything that torch's counter of operations knows"
        )

    def overfits(self) -> None:
        model, rows, split = self.model(), self.eight(), self.corpus.train
        if self.audio:  # of the shorter half, which takes less time
            rows = np.argsort(split.lengths, kind="stable")[rows // 2]
        gold = [split.rows[int(i)] for i in rows]
        main = self.problem.learnt_by_heart or self.task.entry.main_metric
        goal = perfect(main)
        if not is_fraction(main):
            nothing = next(iter(self.problem.floors_of(self.cls, gold, gold, self.corpus.view).values()))
            known = self.problem.by_heart(gold, model.encoder)
            low, high = (score([main], told, gold, self.task.label_tree)[main] for told in (nothing, known))
            goal = low + NEARLY * (high - low)
        reached = math.nan
        phases = (self.train(model, split, [rows] * OVERFIT_STEPS, lr, anew=False) for lr in OVERFIT_RATES)
        for step, _ in enumerate(itertools.chain.from_iterable(phases), start=1):
            if step % 20 == 0:
                model.eval()
                with torch.no_grad():
                    told = model.predict(split.collate(rows), split)
                    reached = score([main], told, gold, self.task.label_tree)[main]
                model.train()
                if better(main, reached, goal) or abs(reached - goal) < 1e-6:
                    return
        raise Broken(f"{main} on its {len(rows)} training examples is {reached:.3f} after {step} steps, not {goal:.3g}")

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
        limit = floor_score(self.task.entry, train, dev, self.cls, self.corpus.view)
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
                found = main_score(self.task, predictions, dev)
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
