"""Capsule network with dynamic routing, over windows of words."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.capsules import USUAL_POSITIONS, present, separate_margin_loss
from architectures.blocks.squash import squash
from architectures.blocks.windows import lengthen
from harness.kinds import TextEncoder, pool
from harness.objectives import Objective, Supervised
from harness.registry import Recipe, register
from harness.views.words import WordBatch


class DynamicRouting(nn.Module):
    """Capsules (B, T, ``types``, ``size``) to parents (B, ``parents``, ``parent_size``) by
    ``iterations`` of routing by agreement.

    A child votes W_ij u_i for parent j, with a matrix for each type of child and each parent. From
    b_ij = 0, each round has c_i = softmax_j(b_i) and v_j = squash(sum_i c_ij u_{j|i}), and b_ij
    grows by v_j . u_{j|i}. The gradient passes through all rounds. The matrices start with a scale
    at which the sum over a text of usual length is about as long as one child.
    """

    def __init__(self, types: int, size: int, parents: int, parent_size: int, iterations: int = 3):
        super().__init__()
        if iterations < 1:
            raise ValueError(f"iterations is {iterations}: routing takes at least one")
        self.iterations = iterations
        self.transformations = nn.Parameter(torch.empty(types, parents, parent_size, size))
        nn.init.normal_(self.transformations, std=parents / math.sqrt(USUAL_POSITIONS * types * size))

    def forward(self, children: Tensor) -> Tensor:
        votes = torch.einsum("pjkd,btpd->btpjk", self.transformations, children).flatten(1, 2)
        logits = votes.new_zeros(votes.shape[:3])
        for _ in range(self.iterations - 1):
            parents = squash(torch.einsum("bij,bijk->bjk", torch.softmax(logits, dim=-1), votes))
            logits = logits + torch.einsum("bijk,bjk->bij", votes, parents)
        return squash(torch.einsum("bij,bijk->bjk", torch.softmax(logits, dim=-1), votes))


class Reconstruction(Supervised):
    """The margin loss, and a text's mean word vector rebuilt from the capsule of its true class.

    Three layers read the class capsules, all but the true one's set to zero. The squared error,
    summed over features, a mean over texts, counts ``owner.reconstruction`` times. No gradient
    moves the word vectors towards what is rebuilt.
    """

    def __init__(self, owner: Any, model: Any, inner: Objective):
        super().__init__(owner, model)
        assert isinstance(inner, Supervised)  # no other objective stands between this one and the head
        self.reduction, self.factor = inner.reduction, owner.reconstruction
        parents, size = owner.routing.transformations.shape[1:3]
        first, second = owner.decoder
        self.decoder = nn.Sequential(
            nn.Linear(parents * size, first),
            nn.ReLU(),
            nn.Linear(first, second),
            nn.ReLU(),
            nn.Linear(second, owner.ngrams.in_channels),
        )

    def at(self, model: Any, inputs: dict[str, Any], target: Tensor) -> dict[str, Tensor]:
        words = inputs["text"]
        capsules = model.encoder.capsules(words)
        task = self.reduced(model, torch.linalg.vector_norm(capsules, dim=-1), target)
        rebuilt = self.decoder((capsules * F.one_hot(target, capsules.shape[1])[..., None]).flatten(1))
        wanted = pool(words.vectors, words.mask, "mean").detach()
        error = self.factor * (rebuilt - wanted).square().sum(1).mean()
        return {"loss": task + error, "task": task, "reconstruction": error}


@register(
    "capsnet",
    name="Capsule network with dynamic routing",
    kind="text",
    paper="Sabour et al. 2017",
    source="M2.4[68,69]",
    year=2017,
    version=2,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=128),
    tiny={"maps": 16, "types": 6, "size": 4, "class_size": 8, "decoder": (8, 12)},
    deviations=(
        "The paper reads images; here windows of three words take the place of the first 9x9 pixels, and primary"
        " capsules read one of them each, not 9x9 at every second place.",
        (
            "A matrix of votes is shared by all positions of a text, as texts differ in length; the paper has one for"
            " each position and type."
        ),
        "What is rebuilt is the mean of a text's word vectors, by a linear last layer, not pixels by a logistic one.",
        "The rate does not decay; that of the authors' program falls by 4 % every 2,000 steps.",
        "The reconstruction weighs 0.0005 beside a sum over the classes, and class capsules have no bias, as in the"
        " paper; in the authors' program it weighs 2 K times as much with K classes, and each capsule has a bias.",
        "The scale at which matrices of votes start is ours: class capsules must not vanish.",
    ),
)
class CapsuleNetwork(TextEncoder):
    """The lengths (B, classes) of class capsules, to which primary capsules of all windows of a
    text are routed by agreement.

    A convolution over ``ngram`` words with ReLU, ``types`` primary capsules of ``size`` numbers at
    each window, squashed, and class capsules of ``class_size`` numbers by dynamic routing. Trained
    by the separate margin loss and a reconstruction (:class:`Reconstruction`).
    """

    trained_by = Reconstruction

    def __init__(
        self,
        width: int,
        classes: int,
        ngram: int = 3,
        maps: int = 256,
        types: int = 32,
        size: int = 8,
        class_size: int = 16,
        iterations: int = 3,
        decoder: tuple = (512, 1024),
        reconstruction: float = 0.0005,
    ):
        super().__init__()
        self.types, self.decoder, self.reconstruction = types, decoder, reconstruction
        self.ngrams = nn.Conv1d(width, maps, ngram)
        self.primary = nn.Conv1d(maps, types * size, 1)
        self.routing = DynamicRouting(types, size, classes, class_size, iterations)
        for layer in (self.ngrams, self.primary):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            nn.init.zeros_(layer.bias)

    def capsules(self, words: WordBatch) -> Tensor:
        """The class capsules (B, classes, ``class_size``)."""
        ngram = self.ngrams.kernel_size[0]
        vectors = lengthen(words.vectors * words.mask[..., None], ngram).transpose(1, 2)
        primary = self.primary(torch.relu(self.ngrams(vectors))).transpose(1, 2)
        children = squash(primary.unflatten(-1, (self.types, -1)))
        return self.routing(present(children, words.mask.sum(1), ngram))

    def forward(self, words: WordBatch) -> Tensor:
        return torch.linalg.vector_norm(self.capsules(words), dim=-1)

    def objective(self, scores: Tensor, labels: Tensor) -> Tensor:
        return separate_margin_loss(scores, labels)
