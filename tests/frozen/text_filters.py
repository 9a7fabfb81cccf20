"""Filters over pairs of words, with vectors that are tuned, kept, or both."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from harness.kinds import TextEncoder
from harness.registry import Recipe, register
from harness.views.words import WordBatch


@register(
    "frozen_filters",
    name="Filters",
    kind="text",
    paper="Nobody 2014",
    source="figure 1",
    year=2014,
    recipe=Recipe(optimizer="adadelta", lr=1.0, batch_size=50, epochs=25, patience=5, weight_decay=0.0),
    tiny={"maps": 12},
    variants={
        "frozen_filters_static": {"name": "Filters, kept vectors", "hyperparameters": {"channels": "static"}},
        "frozen_filters_both": {
            "name": "Filters, two channels",
            "hyperparameters": {"channels": "multichannel"},
            "tiny": {"maps": 8},
            "deviations": ("Both channels start at random.",),
            "version": 2,
        },
    },
)
class Filters(TextEncoder):
    """Maxima over time of filters over two words; rows of the layer above have norm 2 at most."""

    head_max_norm = 2.0

    def __init__(self, width: int, maps: int = 50, dropout: float = 0.2, channels: str = "tuned"):
        super().__init__()
        self.vectors = channels
        self.filters = nn.Conv1d(width, maps, 2, padding=1)
        self.dropout = nn.Dropout(dropout)
        self.size = maps

    def convolve(self, vectors: Tensor, mask: Tensor) -> Tensor:
        """Maps (B, T, maps) of each word with its left neighbour."""
        return self.filters((vectors * mask[..., None]).transpose(1, 2))[..., :-1].transpose(1, 2)

    def forward(self, words: WordBatch) -> Tensor:
        maps = self.convolve(words.vectors, words.mask)
        if self.vectors == "multichannel":
            maps = maps + self.convolve(words.static, words.mask)
        return self.dropout(torch.relu(maps).masked_fill(~words.mask[..., None], -torch.inf).amax(1))
