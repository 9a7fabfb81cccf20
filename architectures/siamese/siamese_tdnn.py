"""Siamese time-delay neural network."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from harness.kinds import PairEncoder
from harness.registry import Recipe, register
from harness.views.words import WordBatch


def resampled(vectors: Tensor, lengths: Tensor, points: int) -> Tensor:
    """Vectors (B, points, D) at equal distances from the first to the last of each text's (B, T,
    D), by linear interpolation."""
    places = torch.linspace(0, 1, points, device=vectors.device) * (lengths - 1)[:, None]
    before = places.long()
    behind = torch.minimum(before + 1, lengths[:, None] - 1)
    left, right = (vectors.gather(1, index[..., None].expand(-1, -1, vectors.shape[-1])) for index in (before, behind))
    return left + (places - before)[..., None] * (right - left)


@register(
    "siamese_tdnn",
    name="Siamese time-delay network",
    kind="pair",
    paper="Bromley et al. 1993",
    source="M2.8[111]",
    year=1993,
    recipe=Recipe(lr=0.001),
    tiny={"points": 40, "units": (16, 16), "reaches": (5, 4), "steps": (2, 2)},
    deviations=(
        "It reads texts as sequences of word vectors, not pen traces of eight numbers a point.",
        "Trained by Adam at a rate of 0.001: the paper's back-propagation is plain.",
        "The wrong pairs' target cosine, -0.9, is unconfirmed.",
    ),
)
class SiameseTDNN(PairEncoder):
    """The cosine (B,) of the feature vectors of two texts, each made by the same two time-delay
    layers with sub-sampling.

    A text is resampled to 200 points, as a signature is. 12 units reach over 11 points and 16 over
    10 of those units' values, each three steps apart, with tanh: all 16 * 19 values are the feature
    vector. Trained by squared error to a cosine of 1 for a right pair and ``wrong`` for a wrong
    one.
    """

    scores = True

    def __init__(
        self,
        width: int,
        points: int = 200,
        units: tuple[int, ...] = (12, 16),
        reaches: tuple[int, ...] = (11, 10),
        steps: tuple[int, ...] = (3, 3),
        wrong: float = -0.9,
    ):
        super().__init__()
        if not len(units) == len(reaches) == len(steps):
            raise ValueError(f"units={units}, reaches={reaches}, steps={steps}: each needs one number for each layer")
        needed = 1
        for reach, step in zip(reversed(reaches), reversed(steps), strict=True):
            needed = (needed - 1) * step + reach
        if points < needed:
            raise ValueError(f"points={points}: reaches={reaches} and steps={steps} need {needed} points or more")
        self.points, self.wrong = points, wrong
        self.delays = nn.ModuleList(
            nn.Conv1d(*shape, stride=step)
            for *shape, step in zip((width, *units)[:-1], units, reaches, steps, strict=True)
        )

    def features(self, text: WordBatch) -> Tensor:
        """Feature vector (B, 16 * 19) of each text."""
        values = resampled(text.vectors, text.lengths, self.points).transpose(1, 2)
        for delay in self.delays:
            values = torch.tanh(delay(values))
        return values.flatten(1)

    def forward(self, first: WordBatch, second: WordBatch) -> Tensor:
        return F.cosine_similarity(self.features(first), self.features(second))

    def rank_loss(self, scores: Tensor, labels: Tensor, groups: Tensor) -> Tensor:
        return F.mse_loss(scores, torch.where(labels == 1, 1.0, self.wrong))
