"""Models that act: a model for a few texts, and the mean gradient over all draws of its choices."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from harness.objectives import Objective, Step
from harness.problems import problem
from harness.problems.base import Batch
from harness.problems.classify import ClassTarget
from harness.registry import Recipe
from harness.training.model import Model, build, objective_of
from harness.views.base import View


def classifier(
    cls: Any, view: View, texts: Sequence[str], labels: Sequence[int], classes: str, width: int, **settings: Any
) -> tuple[Objective, Model, Batch]:
    """A model, always with the same weights, its objective, and a batch of all texts; ``labels``
    are numbers of classes, which have a letter each."""
    torch.manual_seed(0)
    target = ClassTarget()
    target.fit([{"label": label} for label in classes])
    model = build(cls, problem("classify"), settings, view, target, width)
    batch = batch_of(view, texts, labels)
    return objective_of(model, Recipe()), model, batch


def batch_of(view: View, texts: Sequence[str], labels: Sequence[int]) -> Batch:
    """All texts as one batch."""
    rows = np.arange(len(texts))
    return Batch({"text": view.collate(view.encode(texts), rows)}, torch.tensor(labels), rows, 10)


def step_of(batch: Batch, progress: float = 0.9, **further: Any) -> Step:
    """A step of a training that is so far."""
    return Step({"labelled": batch}, progress=progress, **further)


def mean_gradients(
    losses: Callable[[Sequence[Any]], Tensor], draws: Sequence[Any], chances: Sequence[Tensor], wanted: Sequence[Tensor]
) -> list[Tensor]:
    """Mean over all pairs of draws, each as often as it is drawn, of the gradient by what is
    ``wanted`` of a loss that is given two draws."""
    total = [torch.zeros_like(each) for each in wanted]
    for one, other in itertools.product(range(len(draws)), repeat=2):
        loss = losses([draws[one], draws[other]])
        gradients = torch.autograd.grad(loss, wanted, materialize_grads=True, allow_unused=True)
        weight = (chances[one] * chances[other]).detach()
        total = [sum_ + weight * gradient for sum_, gradient in zip(total, gradients, strict=True)]
    return total
