"""Question answering in hyperbolic space."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.blocks.ranking import pairwise_hinge_loss
from harness.kinds import PairEncoder
from harness.registry import Recipe, register
from harness.views.words import WordBatch

RIM = 1e-5
"""Least distance of a vector's end from the border of the unit ball, where every distance is
infinite."""


def poincare_distance(first: Tensor, second: Tensor) -> Tensor:
    """Distances (B,) in the Poincare ball of vectors (B, D), those longer than 1 - RIM shortened to
    it.

    arcosh(1 + 2|q-a|^2 / ((1-|q|^2)(1-|a|^2))), as 2 arsinh(|q-a| / sqrt((1-|q|^2)(1-|a|^2))): the
    same by cosh 2u = 1 + 2 sinh^2 u, but with finite gradients where q = a, and without the
    rounding of 1 + x.
    """
    (q, room_of_q), (a, room_of_a) = clipped(first), clipped(second)
    return 2 * torch.asinh(torch.linalg.vector_norm(q - a, dim=1) / (room_of_q * room_of_a).sqrt())


def clipped(vectors: Tensor) -> tuple[Tensor, Tensor]:
    """Vectors (B, D) inside the unit ball, and 1 - |v|^2 of each, (B,), from the shortened length
    rather than from rounded coordinates."""
    lengths = torch.linalg.vector_norm(vectors, dim=1)
    kept = lengths.clamp(max=1 - RIM)
    return vectors * (kept / lengths.clamp(min=1e-12))[:, None], (1 - kept) * (1 + kept)


@register(
    "hyperqa",
    name="HyperQA",
    kind="pair",
    paper="Tay et al. 2018",
    source="M2.8[127] T4",
    year=2018,
    recipe=Recipe(
        optimizer="adam",
        lr=0.001,
        batch_size=512,
        epochs=50,
        weight_decay=0.000001,
        decay_exempt=("biases",),
        clip=1.0,
    ),
    tiny={"hidden": 24},
    vectors_of_paper="GloVe",
    version=2,
    deviations=(
        "Gradients are not rescaled by (1 - |v|^2)^2 / 4, as the paper does; the release has a gradient's own length in"
        " the place of |v|.",
        "Word vectors are fixed; the release trains them unless asked.",
        "The loss beside the penalty is the mean over the pairs, not their sum as in the release.",
        "The norm of the whole gradient is cut at 1, not that of each tensor.",
        "The paper searches optimiser, margin and batch size per data set: these are ours.",
        (
            "The start is ours: the projection's weights within 0.003 of zero, so that texts start inside the ball, and"
            " a distance that counts -1."
        ),
    ),
)
class HyperQA(PairEncoder):
    """The sum of a text's projected words as a point of the Poincare ball; near points score high.

    x_t = ReLU(W z_t + b), q = sum_t x_t shortened into the unit ball, d the hyperbolic distance of
    question and answer, score (B,) w * d + b. Dropout acts on the word vectors and on the sums
    before they are shortened. Trained by a hinge over all pairs of a right and a wrong candidate.
    The word vectors are fixed; ``tuned`` trains them, for lack of pre-trained ones.
    """

    scores = True
    whole_groups = True
    unused = ("score.bias",)  # a constant in every score, which differences of scores cannot see

    def __init__(self, width: int, hidden: int = 300, margin: float = 1.0, dropout: float = 0.2, tuned: bool = False):
        super().__init__()
        self.vectors = "tuned" if tuned else "fixed"
        self.margin = margin
        self.dropout = nn.Dropout(dropout)
        self.project = nn.Linear(width, hidden)
        self.score = nn.Linear(1, 1)
        # So small that texts of ordinary length start inside the ball: beyond its border the sum's
        # length has no gradient.
        nn.init.uniform_(self.project.weight, -0.003, 0.003)
        nn.init.zeros_(self.project.bias)
        nn.init.constant_(self.score.weight, -1.0)
        nn.init.zeros_(self.score.bias)

    def text(self, words: WordBatch) -> Tensor:
        """The sum (B, hidden) of the projected words, not yet shortened."""
        projected = torch.relu(self.project(self.dropout(words.vectors)))
        return self.dropout((projected * words.mask[..., None]).sum(1))

    def forward(self, first: WordBatch, second: WordBatch) -> Tensor:
        distances = poincare_distance(self.text(first), self.text(second))
        return self.score(distances[:, None]).squeeze(1)

    def rank_loss(self, scores: Tensor, labels: Tensor, groups: Tensor) -> Tensor:
        return pairwise_hinge_loss(scores, labels, groups, self.margin)
