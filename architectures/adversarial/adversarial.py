"""Adversarial training on word vectors."""

from __future__ import annotations

import torch
from torch import Tensor

from architectures.blocks.moved_vectors import MovesVectors, moved, moves_along
from harness.objectives import Objective, Step, Supervised
from harness.registry import Recipe, register
from harness.training.model import Model


class AdversarialLoss(Objective):
    """The loss of each batch, plus ``weight`` times that of the batch with all word vectors moved
    to where the loss of its labels grows fastest. Penalties of the wrapped encoder neither direct
    the move nor count twice."""

    def __init__(self, owner: AdversarialTraining, model: Model, inner: Supervised):
        super().__init__(owner, model, inner)
        self.epsilon, self.numbers, self.weight = owner.epsilon, owner.numbers, owner.weight

    def losses(self, model: Model, step: Step) -> dict[str, Tensor]:
        inputs, target = model.read(step.batch.inputs), step.batch.target
        vectors = [text.vectors.requires_grad_() for text in inputs.values()]
        losses = self.inner.at(model, inputs, target)
        clean = losses.get("task", losses["loss"])
        gradients = torch.autograd.grad(clean, vectors, retain_graph=True)
        moves = moves_along(inputs, gradients, self.epsilon, self.numbers)
        again = self.inner.at(model, moved(inputs, moves), target)
        adversarial = again.get("task", again["loss"])
        return losses | {"loss": losses["loss"] + self.weight * adversarial, "adversarial": adversarial}


@register(
    "adversarial",
    name="Adversarial training on embeddings",
    kind="regime",
    paper="Goodfellow et al. 2015; Miyato et al. 2017",
    source="M2.11[171,173]",
    year=2017,
    recipe=Recipe(
        optimizer="adam",
        lr=0.0005,
        batch_size=64,
        clip=1.0,
        averaging=0.999,
        averaging_warmup=True,
        vector_dims=256,
    ),
    deviations=(
        "The wrapped encoder starts at random, not from a language model.",
        (
            "It is `lstm` with its own 300 units and dropout; the authors' has 1024 units, dropout of 0.5 on the"
            " normalised vectors, with which their epsilon was chosen, and a layer of 30 ReLU units under the softmax."
        ),
        "The learning rate is constant; the authors multiply it by 0.9998 at each step.",
        "Of tuned and static copies of the vectors only the tuned ones are moved.",
        "The encoder's dropout acts behind the move, and on each word by itself; the authors' before it, alike on all.",
        "Gradients of word vectors count in the norm that is clipped; in the authors' program they do not.",
    ),
    variants={
        "adversarial_scaled": {
            "name": "Adversarial training on embeddings, moves by length",
            "hyperparameters": {"numbers": 61_440},
            "deviations": (
                (
                    "The authors' epsilon is for reviews of about 240 words of 256 numbers each; a text of other length"
                    " or width moves as far for each number."
                ),
            ),
        },
    },
)
class AdversarialTraining(MovesVectors):
    """The loss of each batch, plus ``weight`` times the loss with all word vectors moved to where
    it grows fastest.

    A text's vectors s move by r = epsilon * g / |g|, g the gradient of the loss at s and |g| its
    norm over the whole text; r counts as a constant. Each text of a pair moves by its own r. The
    vectors are normalised (:class:`~architectures.blocks.moved_vectors.NormalizedTable`). ``wraps``
    is any encoder of words. With ``numbers``, epsilon is the norm of r in a text of so many numbers
    (words times their width), and r is as long for each number in others.
    """

    trained_by = AdversarialLoss

    def __init__(self, wraps: str = "lstm", epsilon: float = 5.0, weight: float = 1.0, numbers: int | None = None):
        self.wraps, self.epsilon, self.weight, self.numbers = wraps, epsilon, weight, numbers
