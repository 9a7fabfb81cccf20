"""Moves of a text's word vectors, and the regimes that train a model to stand them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from harness import registry
from harness.kinds import Encoder, Regime
from harness.registry import TaskEntry
from harness.training.model import Model, WordTable
from harness.views.tree import TreeBatch
from harness.views.words import PAD

SMALL = 1e-6
"""Added to the variance, as in the authors' code."""

Inputs = Mapping[str, Any]
"""The texts of a batch by field, with their vectors."""


class NormalizedTable(nn.Module):
    """A word table whose vectors have mean 0 and variance 1 over the training text: (v - E) /
    sqrt(Var), number by number (Miyato et al. 2017).

    Rows weigh by ``counts`` (words,); one that training does not count (the unknown word) weighs as
    if seen once, padding nothing. Padding stays zero. Without this a model escapes moves of a given
    size by growing its vectors.
    """

    def __init__(self, table: WordTable, counts: Tensor):
        super().__init__()
        self.table = table
        seen = counts.clamp(min=1)
        seen[PAD] = 0
        self.register_buffer("frequencies", seen / seen.sum())

    def normalized(self, vectors: Tensor, weight: Tensor) -> Tensor:
        """The vectors, by the moments of the table's rows ``weight``."""
        mean = self.frequencies @ weight
        variance = self.frequencies @ (weight - mean).square()
        return (vectors - mean) / (variance + SMALL).sqrt()

    def forward(self, batch: Any) -> Any:
        batch = self.table(batch)
        real = (batch.ids != PAD)[..., None]
        batch = batch._replace(vectors=self.normalized(batch.vectors, self.table.tuned.weight) * real)
        if self.table.static is None:
            return batch
        return batch._replace(static=self.normalized(batch.static, self.table.static.weight) * real)


class MovesVectors(Regime):
    """A regime that moves the normalised vectors of any encoder of words, with the numbers that
    stand behind a vector: the mark of a word that the other text has too, those of further
    sources."""

    @classmethod
    def unfit(cls, task: TaskEntry, hyperparameters: dict[str, Any]) -> str | None:
        wrapped = registry.entry("architectures", hyperparameters["wraps"])
        view = registry.load(wrapped).view_for(task, wrapped.hyperparameters)
        if reason := supervision_missing(registry.load(wrapped), wrapped.id):
            return reason
        if view is None or not view.embeds:
            return f"moves word vectors, and {wrapped.id} reads none on {task.id}"
        return None

    def prepare(self, model: Model, counts: Tensor | None) -> None:
        model.table = NormalizedTable(model.table, counts)


class MovesUnlabelled(MovesVectors):
    """One whose moves are led by the probabilities of classes, of texts without labels too."""

    @classmethod
    def unfit(cls, task: TaskEntry, hyperparameters: dict[str, Any]) -> str | None:
        if reason := super().unfit(task, hyperparameters):
            return reason
        if task.type not in ("classify", "match"):
            return f"needs the probabilities of classes, and a task of type {task.type} has none"
        wrapped = hyperparameters["wraps"]
        return probabilities_missing(registry.load(registry.entry("architectures", wrapped)), wrapped)


def supervision_missing(wrapped: type[Encoder], name: str) -> str | None:
    """The reason why an encoder has no supervised loss alone, if it has not."""
    if wrapped.trained_by is not None:
        return f"needs a supervised loss, and {name} has an objective of its own"
    return None


def probabilities_missing(wrapped: type[Encoder], name: str) -> str | None:
    """The reason why an encoder gives no probabilities of classes, if it does not."""
    if reason := supervision_missing(wrapped, name):
        return reason
    if wrapped.objective is not Encoder.objective:
        return f"needs the probabilities of classes, and the scores of {name} stand for none"
    return None


def over_texts(text: Any, numbers: Tensor) -> Tensor:
    """Sum over each whole text of numbers that stand at its words, so shaped that they can be
    multiplied by it."""
    sums = numbers.flatten(1).sum(1)
    if isinstance(text, TreeBatch):  # the leaves of all texts stand in one row
        owner = text.node_text[text.leaf_nodes]
        sums = torch.zeros_like(sums).index_add(0, owner, sums)[owner]
    return sums.view(-1, *[1] * (numbers.dim() - 1))


def direction(text: Any, gradient: Tensor) -> Tensor:
    """The gradient at a batch's vectors with L2 norm 1 over the whole sequence of each text, or a
    smaller one where its squares are too small for their type; zero at padding and where it is
    zero."""
    gradient = gradient * (text.ids != PAD)[..., None]
    norms = over_texts(text, gradient.square()).sqrt()
    return gradient / norms.clamp(min=torch.finfo(norms.dtype).tiny ** 0.5)


def moves_along(
    inputs: Inputs, gradients: Iterable[Tensor], epsilon: float, numbers: int | None = None
) -> dict[str, Tensor]:
    """Moves of each text along its gradient, by field, of norm ``epsilon`` over the whole text;
    where ``numbers`` are given, of that norm in a text whose vectors have so many numbers together,
    and as far for each number in any other one."""
    moves = {}
    for (field, text), gradient in zip(inputs.items(), gradients, strict=True):
        moves[field] = epsilon * direction(text, gradient)
        if numbers is not None:
            real = (text.ids != PAD)[..., None].expand_as(gradient)
            moves[field] *= (over_texts(text, real.to(gradient.dtype)) / numbers).sqrt()
    return moves


def moved(inputs: Inputs, moves: Mapping[str, Tensor]) -> dict[str, Any]:
    """The texts with their vectors moved, by field."""
    return {field: text._replace(vectors=text.vectors + moves[field]) for field, text in inputs.items()}


@contextmanager
def same_draws(seed: int) -> Iterator[None]:
    """Draw by the seed, and go on afterwards as if nothing had been drawn."""
    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices):
        torch.manual_seed(seed)
        yield


def log_shares(model: Model, inputs: Inputs) -> Tensor:
    """Natural logarithms (B, classes) of the probabilities of each text's classes."""
    return model.head.class_scores(model.head(model.encoder, inputs)).log_softmax(-1)


def divergence(first: Tensor, second: Tensor) -> Tensor:
    """KL(p || q) of each text (B,), in nats, by the logarithms (B, classes) of p and q."""
    return (first.exp() * (first - second)).sum(-1)


def virtual_loss(
    model: Model,
    inputs: Inputs,
    known: Tensor,
    seed: int,
    epsilon: float,
    small: float,
    numbers: int | None = None,
) -> Tensor:
    """Mean of KL(p(x) || p(x + r)), where r is the move under which the model's own answer changes
    most, by one step of the power method (Miyato et al. 2016, 2017).

    A random move d of norm ``small`` begins; r goes along the gradient of the divergence at d, as
    far as :func:`moves_along` says. ``known`` (B, classes) are the logarithms of p(x), made under
    :func:`same_draws` of ``seed``; they count as constants, and so does r. All passes drop the same
    numbers: otherwise the divergence would be one between two draws of dropout, and its gradient
    would lead there.
    """
    known = known.detach()
    begun = moves_along(inputs, [torch.randn_like(text.vectors) for text in inputs.values()], small)
    for move in begun.values():
        move.requires_grad_()
    with same_draws(seed):
        distance = divergence(known, log_shares(model, moved(inputs, begun))).sum()
    gradients = torch.autograd.grad(distance, list(begun.values()))
    moves = moves_along(inputs, gradients, epsilon, numbers)
    with same_draws(seed):
        return divergence(known, log_shares(model, moved(inputs, moves))).mean()
