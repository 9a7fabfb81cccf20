"""Recurrent contexts beside each word, a highway layer, then convolutions."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.blocks.contexts import Context
from architectures.blocks.convolutions import WindowMaxima
from architectures.blocks.highway import Highway
from architectures.blocks.recurrent import reverse
from harness.kinds import TextEncoder
from harness.registry import Recipe, register
from harness.views.words import WordBatch


@register(
    "rcnn_highway",
    name="RCNN with highway layers",
    kind="text",
    paper="Wen et al. 2016",
    source="M2.9[142]",
    year=2016,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=32),
    tiny={"context": 12, "maps": 8},
    deviations=(
        "The contexts are those of Lai et al. 2015: the paper calls them a bidirectional recurrent network.",
        (
            "Sizes and training are not known to us: contexts of 100, 100 maps over windows of 3, 4 and 5, dropout of"
            " 0.5, Adam and batches of 32 are ours."
        ),
    ),
)
class HighwayRCNN(TextEncoder):
    """Each word with its left and right context, [c_l; e; c_r], through highway layers, then
    convolutions over windows of these and the maximum of each map.

    The highway stands between the recurrences and the convolutions: at each position a gate
    chooses, number by number, between the joined vector and relu of a matrix times it. Dropout acts
    on the maxima.
    """

    def __init__(
        self,
        width: int,
        context: int = 100,
        layers: int = 1,
        maps: int = 100,
        windows: tuple = (3, 4, 5),
        dropout: float = 0.5,
    ):
        super().__init__()
        self.left, self.right = Context(width, context), Context(width, context)
        self.highway = Highway(2 * context + width, layers)
        self.features = WindowMaxima(2 * context + width, maps, windows)
        self.dropout = nn.Dropout(dropout)
        self.size = self.features.size

    def forward(self, words: WordBatch) -> Tensor:
        vectors, mask = words.vectors, words.mask
        right = reverse(self.right(reverse(vectors, mask)), mask)
        joined = torch.cat([self.left(vectors), vectors, right], dim=-1)
        return self.dropout(self.features(self.highway(joined), mask))
