"""Few capsules compressed from those of all windows, routed to labels by kernel density for as
many rounds as a text needs."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.capsules import squash
from architectures.blocks.pooling import dynamic_max
from architectures.blocks.windows import lengthen, windows_inside
from harness.kinds import TextEncoder
from harness.registry import Recipe, register
from harness.views.words import WordBatch, Words

STRIDE = 2
LEAST = 1e-12
"""Least sum of agreements whose logarithm is taken: votes against a capsule could make it
negative."""


class DensityRouting(nn.Module):
    """Capsules (B, ``children``, ``size``) to parents (B, ``parents``, ``size``), and the rounds
    (B,) that each text took.

    A child votes W_ij u_i for parent j. From b_ij = 0, each round has c_i = softmax_j(b_i), divided
    by its sum over the children, and v_j = squash(sum_i c_ij u_{j|i}); b_ij grows by d_ij = 1 -
    |squash(u_{j|i}) - v_j|^2. A text is done in the round whose log sum_ij c_ij d_ij is less than
    ``tolerance`` from that of the round before, at the latest in round ``most``.
    """

    def __init__(self, children: int, parents: int, size: int, tolerance: float, most: int):
        super().__init__()
        if most < 1:
            raise ValueError(f"most is {most}: routing takes at least one round")
        self.tolerance, self.most = tolerance, most
        self.transformations = nn.Parameter(torch.empty(children, parents, size, size))
        nn.init.normal_(self.transformations, std=math.sqrt(children / size))

    def forward(self, children: Tensor, parents: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """As above; given the numbers ``parents`` (n,), routed to these alone, as if there were no
        others."""
        chosen = self.transformations if parents is None else self.transformations[:, parents]
        votes = torch.einsum("ijkd,bid->bijk", chosen, children)
        squashed, logits = squash(votes), votes.new_zeros(votes.shape[:3])
        found, rounds, before = None, torch.zeros(len(votes), device=votes.device), None
        done = torch.zeros(len(votes), dtype=torch.bool, device=votes.device)
        for _ in range(self.most):
            shares = torch.softmax(logits, dim=2)
            shares = shares / shares.sum(1, keepdim=True)
            capsules = squash(torch.einsum("bij,bijk->bjk", shares, votes))
            found = capsules if found is None else torch.where(done[:, None, None], found, capsules)
            rounds = rounds + (~done)
            agreement = 1 - (squashed - capsules[:, None]).square().sum(-1)
            logits = logits + agreement
            density = (shares * agreement).detach().sum((1, 2)).clamp(min=LEAST).log()
            if before is not None:
                done = done | ((density - before).abs() < self.tolerance)
            if bool(done.all()):
                break
            before = density
        return found, rounds


@register(
    "nlp_capsule",
    name="Scalable capsules (adaptive KDE routing)",
    kind="text",
    paper="Zhao et al. 2019",
    source="M2.4[73]",
    year=2019,
    recipe=Recipe(
        optimizer="adam",
        lr=0.001,
        batch_size=256,
        vector_dims=300,
        epochs=30,
        patience=30,
        lr_schedule="step",
        factor=0.95,
        step_start=20.0,
        step_epochs=1.0,
    ),
    tiny={"maps": 6, "types": 4, "size": 4, "parts": 3, "compressed": 6},
    vectors_of_paper="GloVe",
    deviations=(
        (
            "Windows are of words, as in the paper; the convolution of the authors' code runs over the numbers of a"
            " word vector, with the words as channels."
        ),
        (
            "Maps keep their maximum in each of equal parts of the text, so that the matrix of the compression fits"
            " texts of any length; theirs reads 500 words, padding included. The number of parts is ours."
        ),
        (
            "Each text is routed for rounds of its own, at least two and at most ten; in the authors' code all of a"
            " batch stop together, the first round against 0, and there is no limit."
        ),
        (
            "Where there are more labels than candidates, a step is routed to the true labels of its batch and others"
            " drawn, and where there are fewer to all; in the authors' code to those of its batch alone. Answers are"
            " routed to all labels, and not to those that another model finds first."
        ),
        "The loss of a text is the sum over its labels, not the mean.",
        "The scale at which matrices of votes start is ours.",
    ),
)
class ScalableCapsules(TextEncoder):
    """Capsules (B, ``compressed`` * ``size``), from which those of the labels are routed; a label
    is as probable as its capsule is long.

    Convolutions over every second window of 2, 4 and 8 words, ``types`` primary capsules in each of
    ``parts`` parts of the text for each of them, and ``compressed`` capsules that are weighted sums
    of all these; then :class:`DensityRouting`. Trained by the cross-entropy of each label's length
    by itself, over ``candidates`` labels at a time.
    """

    gives = "label sets"
    view: ClassVar = Words(max_length=500)

    def __init__(
        self,
        width: int,
        classes: int,
        windows: tuple = (2, 4, 8),
        maps: int = 32,
        types: int = 32,
        size: int = 16,
        parts: int = 8,
        compressed: int = 128,
        tolerance: float = 0.05,
        most: int = 10,
        candidates: int = 200,
    ):
        super().__init__()
        self.size_of_capsules, self.parts, self.candidates, self.classes = size, parts, candidates, classes
        self.ngrams = nn.ModuleList(nn.Conv1d(width, maps, window, stride=STRIDE) for window in windows)
        self.primary = nn.Linear(maps, types * size)
        self.compression = nn.Parameter(torch.empty(len(windows) * parts * types, compressed))
        self.routing = DensityRouting(compressed, classes, size, tolerance, most)
        for weight in (*(each.weight for each in self.ngrams), self.primary.weight, self.compression):
            nn.init.xavier_uniform_(weight)

    def forward(self, words: WordBatch) -> Tensor:
        vectors, pooled = words.vectors * words.mask[..., None], []
        for ngrams in self.ngrams:
            window = ngrams.kernel_size[0]
            maps = ngrams(lengthen(vectors, window).transpose(1, 2)).transpose(1, 2)
            pooled.append(dynamic_max(maps, (windows_inside(words.lengths, window) - 1) // STRIDE + 1, self.parts))
        primary = self.primary(torch.cat(pooled, dim=1)).unflatten(-1, (-1, self.size_of_capsules))
        return torch.einsum("bnd,np->bpd", squash(primary).flatten(1, 2), self.compression).flatten(1)

    def lengths(self, outputs: Tensor, labels: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Lengths (B, labels) of the capsules of all labels, or of some by number, and rounds."""
        capsules, rounds = self.routing(outputs.unflatten(-1, (-1, self.size_of_capsules)), labels)
        return torch.linalg.vector_norm(capsules, dim=-1), rounds

    def set_losses(self, outputs: Tensor, labels: Tensor) -> Tensor:
        asked = torch.arange(self.classes, device=labels.device)
        if self.training and self.classes > self.candidates:
            # The labels of the batch come first, the others in an order of chance.
            order = labels.any(0).float() + torch.rand(self.classes, device=labels.device) / 2
            asked = order.topk(max(self.candidates, int(labels.any(0).sum()))).indices
        lengths, _ = self.lengths(outputs, asked)
        return F.binary_cross_entropy(lengths, labels[:, asked], reduction="none").sum(1)

    def set_probabilities(self, outputs: Tensor) -> Tensor:
        lengths, rounds = self.lengths(outputs)
        self.tell_choice("rounds of routing", rounds)
        return lengths
