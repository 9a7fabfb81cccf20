"""A small model under a regime that moves word vectors, and what it answers, written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from harness.kinds import Regime, TextEncoder
from harness.objectives import Step
from harness.problems import problem
from harness.problems.base import Batch
from harness.problems.classify import ClassTarget
from harness.registry import Recipe
from harness.training.model import Model, build, objective_of
from harness.views.words import Words

TEXTS = ["a b b c d", "c a", "d d b"]
OTHERS = ["b", "a c d d", "b b"]
DIMS = 4


class Summed(TextEncoder):
    """A smooth encoder that also reads padding, so that a move there would be seen."""

    def __init__(self, width: int):
        super().__init__()
        self.hidden = torch.nn.Linear(width, 3)
        self.size = 3

    def forward(self, words: Any) -> Tensor:
        return torch.tanh(self.hidden(words.vectors)).sum(1)


class Dropping(Summed):
    """As :class:`Summed`, through dropout of half of the numbers."""

    def forward(self, words: Any) -> Tensor:
        return super().forward(words._replace(vectors=F.dropout(words.vectors, 0.5, self.training)))


def view_of(texts: list[str]) -> Words:
    """A view of all words of the texts."""
    view = Words(min_count=1)
    view.fit(texts)
    return view


def prepared(
    regime: Regime, task_type: str = "classify", encoder: type[TextEncoder] = Summed
) -> tuple[Model, Batch, Batch]:
    """A model under the regime, a labelled batch for it and one without labels: one text per row,
    or two of different lengths."""
    torch.manual_seed(0)
    view, target = view_of(TEXTS), ClassTarget()
    target.fit([{"label": label} for label in "wxyz"])
    model = build(encoder, problem(task_type), {}, view, target, DIMS)
    regime.prepare(model, torch.tensor([0.0, 0.0, *view.vocabulary.counts]))
    fields = {"text": TEXTS} if task_type == "classify" else {"first": TEXTS, "second": OTHERS}
    inputs = {field: view.collate(view.encode(texts), np.arange(3)) for field, texts in fields.items()}
    others = {field: view.collate(view.encode(texts[::-1]), np.arange(3)) for field, texts in fields.items()}
    labelled = Batch(inputs, torch.tensor([0, 1, 1]), np.arange(3), 10)
    return model, labelled, Batch(others, None, np.arange(3), 10)


def losses_of(regime: Regime, model: Model, labelled: Batch, unlabelled: Batch | None = None) -> dict[str, Tensor]:
    """The losses that training under the regime knows, by name."""
    batches = {"labelled": labelled} | ({} if unlabelled is None else {"unlabelled": unlabelled})
    return objective_of(model, Recipe(), regime).losses(model, Step(batches, 0.0))


class WrittenOut:
    """What a model around :class:`Summed` computes, by functions of its parameters alone."""

    def __init__(self, model: Model, counts: list[int]):
        self.parameters = {name: value.detach().clone().requires_grad_() for name, value in model.named_parameters()}
        seen = torch.tensor([0.0, 1.0, *counts], dtype=torch.float64)
        self.shares = seen / seen.sum()

    def vectors(self, ids: Tensor) -> Tensor:
        """Normalised vectors, zero at padding."""
        table = self.parameters["table.table.tuned.weight"]
        mean = (self.shares[:, None] * table).sum(0)
        variance = (self.shares[:, None] * (table - mean) ** 2).sum(0)
        return ((table[ids] - mean) / (variance + 1e-6) ** 0.5) * (ids > 0)[..., None]

    def logs(self, vectors: Tensor) -> Tensor:
        """Logarithms of the probabilities of the classes."""
        own = self.parameters
        states = torch.tanh(vectors @ own["encoder.hidden.weight"].T + own["encoder.hidden.bias"]).sum(1)
        scores = states @ own["head.output.weight"].T + own["head.output.bias"]
        return scores - scores.exp().sum(1, keepdim=True).log()

    def virtual(self, ids: Tensor, drawn: Tensor, epsilon: float, small: float) -> Tensor:
        """The virtual adversarial loss of texts, from the random move ``drawn``."""
        vectors, real = self.vectors(ids), (ids > 0)[..., None]
        known = self.logs(vectors).detach()

        def distance(at: Tensor) -> Tensor:
            logs = self.logs(at)
            return sum(p.exp() * (p - q) for p, q in zip(known.flatten(), logs.flatten(), strict=True))

        def unit(move: Tensor) -> Tensor:
            return torch.stack([each / (each**2).sum() ** 0.5 for each in move * real])

        begun = (small * unit(drawn)).requires_grad_()
        (gradient,) = torch.autograd.grad(distance(vectors.detach() + begun), begun)
        return distance(vectors + epsilon * unit(gradient)) / len(ids)
