"""Text matching as image recognition."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.pooling import dynamic_max
from harness.kinds import PairEncoder
from harness.layers.overlap import same_words
from harness.registry import Recipe, register
from harness.views.base import View
from harness.views.words import WordBatch, Words


class SpeltWords(Words):
    """Words that are only compared by their letters: no vectors are looked up."""

    embeds: ClassVar[bool] = False


SIMILARITIES = ("indicator", "dot", "cosine")


@register(
    "match_pyramid_indicator",
    name="MatchPyramid, indicator",
    kind="pair",
    paper="Pang et al. 2016",
    source="M2.3[62]",
    year=2016,
    recipe=Recipe(optimizer="adagrad", lr=0.01, batch_size=32),
    hyperparameters={"similarity": "indicator"},
    version=2,
    deviations=(
        (
            "The paper names no size of the grid (5 x 5 is its author's later word), the second pooling or the hidden"
            " layer."
        ),
        "Nor does it name the rate of AdaGrad or that of dropout: 0.01 and 0.5 are ours.",
        (
            "Ranking is pointwise here; the authors' two releases for ranking have a hinge loss, Adam, fixed vectors,"
            " no dropout and one convolution, of 2 x 10 or of 5 x 5."
        ),
    ),
    variants={
        "match_pyramid_dot": {
            "name": "MatchPyramid, dot product",
            "hyperparameters": {"similarity": "dot"},
            "deviations": (
                (
                    "Word vectors start uniform in +-0.25, the paper's on the unit ball: of 300 numbers, a word's"
                    " product with itself is about 6 here and 1 there."
                ),
            ),
        },
        "match_pyramid_cosine": {
            "name": "MatchPyramid, cosine",
            "hyperparameters": {"similarity": "cosine"},
            "deviations": ("Word vectors start uniform in +-0.25, the paper's on the unit ball.",),
        },
    },
)
class MatchPyramid(PairEncoder):
    """The similarities of all words of one text with all of the other are an image, and an image
    network reads it.

    The image is the words' equality, dot product or cosine (B, T, U). A convolution of 5 x 5 with
    ReLU; dynamic pooling to a grid of ``grid`` x ``grid`` cells, whose sizes follow from the two
    texts' own lengths; a convolution of 3 x 3 with ReLU; maxima of 2 x 2; a hidden layer (B,
    hidden), on which dropout acts and the harness puts the last. Images are framed with zeros, so
    that both convolutions keep the size.
    """

    @classmethod
    def reads(cls, column: str, hyperparameters: dict[str, Any]) -> View | None:
        if column != "text":
            return None
        return SpeltWords() if hyperparameters.get("similarity") == "indicator" else Words()

    def __init__(
        self,
        width: int,
        similarity: str = "dot",
        maps: tuple = (8, 16),
        windows: tuple = (5, 3),
        grid: int = 5,
        hidden: int = 128,
        dropout: float = 0.5,
    ):
        super().__init__()
        if similarity not in SIMILARITIES:
            raise ValueError(f"match_pyramid: similarity={similarity!r} is none of {', '.join(SIMILARITIES)}")
        self.similarity, self.grid = similarity, grid
        self.first = nn.Conv2d(1, maps[0], windows[0], padding="same")
        self.second = nn.Conv2d(maps[0], maps[1], windows[1], padding="same")
        self.pool = nn.MaxPool2d(2, ceil_mode=True)
        self.hidden = nn.Linear(maps[1] * (-(-grid // 2)) ** 2, hidden)
        self.dropout = nn.Dropout(dropout)
        self.size = hidden

    def image(self, first: WordBatch, second: WordBatch) -> Tensor:
        """Similarities (B, T, U) of the words of both texts; zero at padding."""
        if self.similarity == "indicator":
            return same_words(first, second).to(self.hidden.weight.dtype)
        a, b = (text.vectors * text.mask[..., None] for text in (first, second))
        if self.similarity == "cosine":
            a, b = F.normalize(a, dim=-1), F.normalize(b, dim=-1)
        return a @ b.transpose(1, 2)

    def forward(self, first: WordBatch, second: WordBatch) -> Tensor:
        maps = torch.relu(self.first(self.image(first, second)[:, None]))
        rows = dynamic_max(maps.movedim(2, 1), first.lengths, self.grid)
        cells = dynamic_max(rows.movedim(3, 1), second.lengths, self.grid).permute(0, 3, 2, 1)
        maps = self.pool(torch.relu(self.second(cells)))
        return self.dropout(torch.relu(self.hidden(maps.flatten(1))))
