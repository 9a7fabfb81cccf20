"""Capsules with a pose and an activation each, routed by expectation and maximisation."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.capsules import keep_scale
from architectures.blocks.windows import lengthen, window_mask
from harness.kinds import TextEncoder
from harness.objectives import Objective, Step, Supervised
from harness.registry import Recipe, register
from harness.views.words import WordBatch

LOWEST_VARIANCE = 1e-4
"""Added to each variance: that of a parent with one child, or with equal votes, is zero."""


class ExpectationMaximisation(nn.Module):
    """Votes (B, I, J, H) of children with activations (B, I) for J parents, to the parents' poses
    (B, J, H) and activations (B, J).

    Each parent is a normal distribution of votes without covariances. From R_ij = 1 / J, each round
    weighs the votes with R_ij a_i to the mean mu_j and the variance s_jh^2 of each entry h, and a_j
    = sigmoid(l (beta_a - (beta_u + mean_h log s_jh) N_j)): N_j, the sum of the weights, is how much
    there is to describe. Then R_i is the softmax over parents of log a_j + log N(V_ij; mu_j,
    s_j^2). N_j is divided by an even share of the children, so that it does not grow with the
    length of a text (Gritzman 2019). l = round / ``rounds`` rises. The last round ends with the
    activations.
    """

    def __init__(self, parents: int, rounds: int):
        super().__init__()
        if rounds < 1:
            raise ValueError(f"rounds is {rounds}: routing takes at least one")
        self.rounds = rounds
        self.activation_cost = nn.Parameter(torch.zeros(parents))
        self.use_cost = nn.Parameter(torch.zeros(parents))

    def forward(self, votes: Tensor, activations: Tensor) -> tuple[Tensor, Tensor]:
        shares = votes.new_full(votes.shape[:3], 1 / votes.shape[2])
        share_of_all = activations.sum(1).clamp(min=1e-8)[:, None] / votes.shape[2]
        for number in range(1, self.rounds + 1):
            weights = shares * activations[..., None]
            amounts = weights.sum(1)
            parts = (weights / amounts.clamp(min=1e-8)[:, None])[..., None]
            means = (parts * votes).sum(1)
            variances = (parts * (votes - means[:, None]) ** 2).sum(1) + LOWEST_VARIANCE
            costs = (self.use_cost + 0.5 * variances.log().mean(-1)) * (amounts / share_of_all)
            parents = F.logsigmoid(number / self.rounds * (self.activation_cost - costs))
            if number < self.rounds:
                distances = (votes - means[:, None]) ** 2 / variances[:, None]
                likelihoods = -0.5 * (distances + (2 * math.pi * variances).log()[:, None]).sum(-1)
                shares = torch.softmax(parents[:, None] + likelihoods, dim=2)
        return means, parents.exp()


class SpreadLoss(Supervised):
    """The spread loss, whose margin grows evenly from 0.2 to 0.9 over the training."""

    def __init__(self, owner: Any, model: Any, inner: Objective):
        super().__init__(owner, model)
        assert isinstance(inner, Supervised)  # no other objective stands between this one and the head
        self.reduction = inner.reduction

    def losses(self, model: Any, step: Step) -> dict[str, Tensor]:
        model.encoder.margin = 0.2 + 0.7 * step.progress
        return super().losses(model, step)


@register(
    "em_caps",
    name="Matrix capsules with EM routing",
    kind="text",
    paper="Hinton et al. 2018",
    source="M2.4[70]",
    year=2018,
    recipe=Recipe(optimizer="adam", lr=0.003, batch_size=64),
    tiny={"maps": 16, "types": 4},
    deviations=(
        "The paper reads images; here windows of three words take the place of 5x5 pixels.",
        "One layer of capsules votes for the classes; the two convolutional ones between them are left out.",
        (
            "What a parent costs is a mean over the entries of its pose, not their sum, and is divided by an even share"
            " of the children; the inverse temperature of a round is its number over that of rounds. The authors have"
            " 0.01 (1 - 0.95^round) beside sums."
        ),
        "Poses keep a variance of at least 0.0001.",
        "The rate does not decay, and weights have no penalty.",
        "Both costs start at zero; the authors draw them so that half of the capsules are active.",
        "Votes start near the identity, with noise, so that capsules do not vanish.",
    ),
)
class MatrixCapsules(TextEncoder):
    """The activations (B, classes) of class capsules, to which the capsules of all windows of a
    text are routed by :class:`ExpectationMaximisation`.

    A convolution over ``ngram`` words with ReLU; at each window ``types`` capsules, each with a
    pose of ``side`` x ``side`` numbers and a logistic activation. A child's vote for a class is its
    pose times a matrix for its type and the class, which all windows share. Coordinate addition:
    where in the text a window begins, from 0 to below 1, is added to the upper right number of its
    votes. Trained by the spread loss, sum over the other classes of max(0, m - (a_right - a))^2,
    with the margin m of :class:`SpreadLoss`.
    """

    trained_by = SpreadLoss
    margin = 0.9

    def __init__(
        self,
        width: int,
        classes: int,
        ngram: int = 3,
        maps: int = 32,
        types: int = 32,
        side: int = 4,
        rounds: int = 3,
    ):
        super().__init__()
        self.side = side
        self.ngrams = nn.Conv1d(width, maps, ngram)
        keep_scale(self.ngrams)
        self.poses = nn.Linear(maps, types * side * side)
        self.present = nn.Linear(maps, types)
        noise = 0.3 * torch.randn(types, classes, side, side)
        self.transformations = nn.Parameter(torch.eye(side) + noise)
        self.routing = ExpectationMaximisation(classes, rounds)

    def primary(self, words: WordBatch) -> tuple[Tensor, Tensor]:
        """Poses (B, T', types, side, side) and activations (B, T', types), zero where a window is
        not inside the text."""
        ngram = self.ngrams.kernel_size[0]
        vectors = lengthen(words.vectors * words.mask[..., None], ngram)
        features = torch.relu(self.ngrams(vectors.mT)).mT
        inside = window_mask(words.mask.sum(1), ngram, features.shape[1])
        poses = self.poses(features).unflatten(-1, (-1, self.side, self.side))
        return poses, torch.sigmoid(self.present(features)) * inside[..., None]

    def forward(self, words: WordBatch) -> Tensor:
        poses, activations = self.primary(words)
        votes = torch.einsum("btpxy,pjyz->btpjxz", poses, self.transformations)
        lengths = words.mask.sum(1).clamp(min=1)
        places = torch.arange(votes.shape[1], device=votes.device) / lengths[:, None]
        corner = F.pad(votes.new_ones(1, 1), (self.side - 1, 0, 0, self.side - 1))
        votes = votes + places[:, :, None, None, None, None] * corner
        return self.routing(votes.flatten(1, 2).flatten(3), activations.flatten(1))[1]

    def objective(self, scores: Tensor, labels: Tensor) -> Tensor:
        right = scores.gather(1, labels[:, None])
        others = 1 - F.one_hot(labels, scores.shape[1])
        return (others * torch.relu(self.margin - (right - scores)) ** 2).sum(1).mean()
