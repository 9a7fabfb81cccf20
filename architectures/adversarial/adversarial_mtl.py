"""Adversarial multi-task learning: what tasks share must not tell which of them a text is of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.recurrent import Recurrent
from harness.kinds import TextEncoder
from harness.layers.pooling import pool
from harness.objectives import Learner, MultiTask, Objective, Step
from harness.registry import Recipe, register
from harness.views.words import WordBatch


class Reversed(torch.autograd.Function):
    """The numbers as they are, whose gradient comes back with the opposite sign (Ganin & Lempitsky
    2015)."""

    @staticmethod
    def forward(ctx: Any, numbers: Tensor) -> Tensor:
        return numbers.view_as(numbers)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        [gradient] = gradients
        return -gradient


def overlap(common: Tensor, own: Tensor) -> Tensor:
    """Squared Frobenius norm of S^T P, whose rows are the vectors (B, size) of a batch: 0 where
    each number of one is orthogonal to each of the other."""
    return (common.T @ own).square().sum()


class AdversarialTasks(MultiTask):
    """The losses of all tasks, the overlap of shared and private vectors, and the loss of a
    discriminator that tells the task from the shared vector, whose gradient is reversed there."""

    def __init__(self, owner: AdversarialMultiTask, model: Learner, inner: Objective | None = None):
        super().__init__(owner, model, inner)
        self.discriminator = nn.Linear(owner.shared.size, len(self.streams))

    def losses(self, model: Learner, step: Step) -> dict[str, Tensor]:
        [stream] = step.batches
        task = self.streams.index(stream)

        def judge(common: Tensor) -> Tensor:
            told = self.discriminator(Reversed.apply(common))
            return F.cross_entropy(told, torch.full((len(told),), task, device=told.device))

        model.encoder.judge = judge
        try:
            return super().losses(model, step)
        finally:
            model.encoder.judge = None


@register(
    "adversarial_mtl",
    name="Adversarial multi-task learning (ASP-MTL)",
    kind="text",
    paper="Liu et al. 2017",
    source="M2.11[175]",
    year=2017,
    recipe=Recipe(optimizer="adagrad", lr=0.01, batch_size=16, vector_dims=200),
    tiny={"hidden": 8, "adversarial": 2.0},
    vectors_of_paper="GloVe",
    deviations=(
        "IMDB and SST-2 are the tasks; the paper has sixteen kinds of reviews, of about 2,000 texts each.",
        "A state has as many numbers as a word vector, and the optimiser is Adagrad; the paper states neither.",
        "The rows of the matrices that should be orthogonal are the vectors of a batch.",
        "A task is drawn in proportion to its size, and all weigh the same.",
        "Weights begin as PyTorch's do; the paper's are uniform in +-0.1.",
        "Each gate has two bias vectors, as PyTorch's fused layer does, which is one bias with twice the step.",
    ),
)
class AdversarialMultiTask(TextEncoder):
    """The last state of an LSTM that all tasks share, behind it that of an LSTM of the task's own.

    Beside the task's loss the training minimises ``adversarial`` times the cross-entropy of the
    discriminator, which the shared LSTM maximises, and ``orthogonal`` times the :func:`overlap` of
    the two vectors.
    """

    trained_by = AdversarialTasks
    cut = "the shared LSTM climbs the discriminator's loss, as the paper's reversal layer wants it"
    judge: Callable[[Tensor], Tensor] | None = None
    """The loss of the discriminator on shared vectors, while a pass is trained."""

    def __init__(
        self,
        width: int,
        companions: tuple[str, ...] = ("imdb", "sst2"),
        hidden: int = 200,
        adversarial: float = 0.05,
        orthogonal: float = 0.01,
    ):
        super().__init__()
        self.companions, self.size = companions, 2 * hidden
        self.adversarial, self.orthogonal = adversarial, orthogonal
        self.shared = Recurrent("lstm", width, hidden)
        self.private = nn.ModuleList(Recurrent("lstm", width, hidden) for _ in range(1 + len(companions)))

    def forward(self, words: WordBatch) -> Tensor:
        common, own = (
            pool(layer(words.vectors, words.mask), words.mask, "last")
            for layer in (self.shared, self.private[self.member])
        )
        self.add_loss("overlap", self.orthogonal * overlap(common, own))
        if self.judge is not None:
            self.add_loss("discriminator", self.adversarial * self.judge(common))
        return torch.cat([common, own], dim=1)
