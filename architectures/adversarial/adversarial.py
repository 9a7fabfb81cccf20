"""Adversarial training on word vectors."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from harness import registry
from harness.kinds import Regime
from harness.objectives import Objective, Step, Supervised
from harness.registry import Entry, Recipe, register
from harness.training.model import Model, WordTable
from harness.views.tree import TreeBatch
from harness.views.words import PAD

SMALL = 1e-6
"""Added to the variance, as in the authors' code."""


class NormalizedTable(nn.Module):
    """A word table whose vectors have mean 0 and variance 1 over the training text: (v - E) /
    sqrt(Var), number by number.

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


def direction(text: Any, gradient: Tensor) -> Tensor:
    """The gradient at a batch's vectors with L2 norm 1 over the whole sequence of each text; zero
    at padding and where it is zero."""
    gradient = gradient * (text.ids != PAD)[..., None]
    squares = gradient.flatten(1).square().sum(1)
    if isinstance(text, TreeBatch):  # the leaves of all texts stand in one row
        owner = text.node_text[text.leaf_nodes]
        squares = torch.zeros_like(squares).index_add(0, owner, squares)[owner]
    norms = squares.sqrt().clamp(min=torch.finfo(squares.dtype).tiny)
    return gradient / norms.view(-1, *[1] * (gradient.dim() - 1))


class AdversarialLoss(Objective):
    """The loss of each batch, plus ``weight`` times that of the batch with all word vectors moved
    to where the loss of its labels grows fastest. Penalties of the wrapped encoder neither direct
    the move nor count twice."""

    def __init__(self, owner: AdversarialTraining, model: Model, inner: Supervised):
        super().__init__(owner, model, inner)
        self.epsilon, self.weight = owner.epsilon, owner.weight

    def losses(self, model: Model, step: Step) -> dict[str, Tensor]:
        inputs, target = model.read(step.batch.inputs), step.batch.target
        vectors = [text.vectors.requires_grad_() for text in inputs.values()]
        losses = self.inner.at(model, inputs, target)
        clean = losses.get("task", losses["loss"])
        gradients = torch.autograd.grad(clean, vectors, retain_graph=True)
        moved = {
            field: text._replace(vectors=text.vectors + self.epsilon * direction(text, gradient))
            for (field, text), gradient in zip(inputs.items(), gradients, strict=True)
        }
        again = self.inner.at(model, moved, target)
        adversarial = again.get("task", again["loss"])
        return losses | {"loss": losses["loss"] + self.weight * adversarial, "adversarial": adversarial}


@register(
    "adversarial",
    name="Adversarial training on embeddings",
    kind="regime",
    paper="Goodfellow et al. 2015; Miyato et al. 2017",
    source="M2.11[171,173]",
    year=2017,
    recipe=Recipe(optimizer="adam", lr=0.0005, batch_size=64, clip=1.0, vector_dims=256),
    deviations=(
        "The wrapped encoder starts at random, not from a language model.",
        (
            "It is `lstm` with its own 300 units and dropout; the authors' has 1024 units, dropout of 0.5 on the"
            " normalised vectors, with which their epsilon was chosen, and a layer of 30 ReLU units under the softmax."
        ),
        "The learning rate is constant; the authors multiply it by 0.9998 at each step.",
        "Of tuned and static copies of the vectors only the tuned ones are moved.",
    ),
)
class AdversarialTraining(Regime):
    """The loss of each batch, plus ``weight`` times the loss with all word vectors moved to where
    it grows fastest.

    A text's vectors s move by r = epsilon * g / |g|, g the gradient of the loss at s and |g| its
    norm over the whole text; r counts as a constant. Each text of a pair moves by its own r. The
    vectors are normalised (:class:`NormalizedTable`). ``wraps`` is any encoder of words.
    """

    trained_by = AdversarialLoss

    def __init__(self, wraps: str = "lstm", epsilon: float = 5.0, weight: float = 1.0):
        self.wraps, self.epsilon, self.weight = wraps, epsilon, weight

    @classmethod
    def unfit(cls, task: Entry, hyperparameters: dict[str, Any]) -> str | None:
        wrapped = registry.entry("architectures", hyperparameters["wraps"])
        view = registry.load(wrapped).view_for(task, wrapped.hyperparameters)
        if registry.load(wrapped).trained_by is not None:
            return f"needs a supervised loss, and {wrapped.id} has an objective of its own"
        if view is None or not view.embeds:
            return f"moves word vectors, and {wrapped.id} reads none on {task.id}"
        return None

    def prepare(self, model: Model, counts: Tensor | None) -> None:
        model.table = NormalizedTable(model.table, counts)
