"""Virtual adversarial training on word vectors."""

from __future__ import annotations

import torch
from torch import Tensor

from architectures.blocks.moved_vectors import MovesUnlabelled, log_shares, same_draws, virtual_loss
from harness.objectives import STREAMS, Objective, Step, Supervised
from harness.registry import Recipe, register
from harness.training.model import Model


class VirtualAdversarialLoss(Objective):
    """The loss of each labelled batch, plus ``weight`` times the mean divergence of the answers to
    texts without labels from those to the same texts moved.

    The stream of texts without labels has all training texts, also those whose labels are known:
    the mean is over both.
    """

    streams = STREAMS

    def __init__(self, owner: VirtualAdversarialTraining, model: Model, inner: Supervised):
        super().__init__(owner, model, inner)
        self.epsilon, self.small, self.numbers, self.weight = owner.epsilon, owner.small, owner.numbers, owner.weight

    def losses(self, model: Model, step: Step) -> dict[str, Tensor]:
        losses = self.inner.losses(model, step)
        inputs = model.read(step.batches["unlabelled"].inputs)
        seed = int(torch.randint(1 << 62, ()))
        with torch.no_grad(), same_draws(seed):
            known = log_shares(model, inputs)
        virtual = virtual_loss(model, inputs, known, seed, self.epsilon, self.small, self.numbers)
        return losses | {"loss": losses["loss"] + self.weight * virtual, "virtual": virtual}


@register(
    "vat",
    name="Virtual adversarial training",
    kind="regime",
    paper="Miyato et al. 2016, 2017",
    source="M2.11[172,173] T1",
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
    sees=("texts without labels",),
    deviations=(
        "The wrapped encoder starts at random, not from a language model.",
        (
            "It is `lstm` with its own 300 units and dropout; the authors' has 1024 units, dropout of 0.5 on the"
            " normalised vectors, with which their epsilon was chosen, and a layer of 30 ReLU units under the softmax."
        ),
        "The learning rate is constant; the authors multiply it by 0.9998 at each step.",
        "Texts without labels are the training texts alone; the authors have 50,000 more reviews.",
        "Of tuned and static copies of the vectors only the tuned ones are moved.",
        "The encoder's dropout acts behind the move, and on each word by itself; the authors' before it, alike on all.",
        "Gradients of word vectors count in the norm that is clipped; in the authors' program they do not.",
    ),
    variants={
        "vat_scaled": {
            "name": "Virtual adversarial training, moves by length",
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
class VirtualAdversarialTraining(MovesUnlabelled):
    """The loss of labelled texts, plus ``weight`` times the mean of KL(p(x) || p(x + r)) over all
    training texts, where r is the move of their word vectors that changes the answer most.

    No label is read to find r, so that texts without labels count too. From a random move d of norm
    ``small`` on, r = epsilon * g / |g|, g the gradient of KL(p(x) || p(x + d)) at d and |g| its
    norm over the whole text; p(x) and r count as constants
    (:func:`~architectures.blocks.moved_vectors.virtual_loss`). The vectors are normalised as in
    adversarial training; ``numbers`` are as there. ``wraps`` is any encoder of words.
    """

    trained_by = VirtualAdversarialLoss

    def __init__(
        self,
        wraps: str = "lstm",
        epsilon: float = 5.0,
        small: float = 0.1,
        weight: float = 1.0,
        numbers: int | None = None,
    ):
        self.wraps, self.epsilon, self.small, self.weight, self.numbers = wraps, epsilon, small, weight, numbers
