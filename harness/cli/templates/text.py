"""My model: one sentence on what it is."""

from __future__ import annotations

from torch import Tensor, nn

from harness.kinds import TextEncoder, pool
from harness.registry import Recipe, register
from harness.views.words import WordBatch


@register(
    "my_model",
    name="My model",
    kind="text",
    paper="Author & Author 2000",
    source="section or equation that this follows",
    year=2000,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=32, epochs=10),
    tiny={"hidden": 8},
)
class MyModel(TextEncoder):
    """Mean of the word vectors, then one hidden layer. Say here what the paper does, and where."""

    def __init__(self, width: int, hidden: int = 100, dropout: float = 0.2):
        super().__init__()
        self.hidden = nn.Sequential(nn.Dropout(dropout), nn.Linear(width, hidden), nn.Tanh())
        self.size = hidden

    def forward(self, words: WordBatch) -> Tensor:
        return self.hidden(pool(words.vectors, words.mask, "mean"))
