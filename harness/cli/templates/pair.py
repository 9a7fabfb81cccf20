"""My model: one sentence on what it is."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from harness.kinds import PairEncoder, pool
from harness.registry import Recipe, register
from harness.views.words import WordBatch


@register(
    "my_model",
    name="My model",
    kind="pair",
    paper="Author & Author 2000",
    source="section or equation that this follows",
    year=2000,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=32, epochs=10),
    tiny={"hidden": 8},
)
class MyModel(PairEncoder):
    """Both texts as mean vectors u and v; a hidden layer reads [u, v, |u - v|, u * v].

    Say here what the paper does, and where.
    """

    def __init__(self, width: int, hidden: int = 100, dropout: float = 0.2):
        super().__init__()
        self.hidden = nn.Sequential(nn.Dropout(dropout), nn.Linear(4 * width, hidden), nn.Tanh())
        self.size = hidden

    def forward(self, first: WordBatch, second: WordBatch) -> Tensor:
        u, v = (pool(words.vectors, words.mask, "mean") for words in (first, second))
        return self.hidden(torch.cat([u, v, (u - v).abs(), u * v], dim=1))
