"""My model: one sentence on what it is."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from harness.kinds import Tagger
from harness.registry import Recipe, register
from harness.views.words import WordBatch


@register(
    "my_model",
    name="My model",
    kind="tag",
    paper="Author & Author 2000",
    source="section or equation that this follows",
    year=2000,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=32, epochs=10),
    tiny={"hidden": 8},
)
class MyModel(Tagger):
    """Scores of a word's labels from the word and its two neighbours. Say here what the paper does,
    and where."""

    decoder = "softmax"

    def __init__(self, width: int, labels: int, hidden: int = 100, dropout: float = 0.2):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.window = nn.Conv1d(width, hidden, kernel_size=3, padding=1)
        self.output = nn.Linear(hidden, labels)

    def forward(self, words: WordBatch) -> Tensor:
        vectors = self.dropout(words.vectors) * words.mask[..., None]
        return self.output(torch.tanh(self.window(vectors.transpose(1, 2)).transpose(1, 2)))
