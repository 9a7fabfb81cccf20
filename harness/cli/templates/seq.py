"""My model: one sentence on what it is."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from harness.kinds import SequenceEncoder
from harness.registry import Recipe, register


@register(
    "my_model",
    name="My model",
    kind="seq",
    paper="Author & Author 2000",
    source="section or equation that this follows",
    year=2000,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=32, epochs=10),
    tiny={"hidden": 8},
)
class MyModel(SequenceEncoder):
    """A state per position from its vector and its left neighbour's. Say here what the paper does,
    and where."""

    pooling = "max"

    def __init__(self, width: int, hidden: int = 100, dropout: float = 0.2):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.here = nn.Linear(width, hidden)
        self.left = nn.Linear(width, hidden, bias=False)
        self.size = hidden

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        vectors = self.dropout(vectors)
        neighbours = nn.functional.pad(vectors, (0, 0, 1, 0))[:, :-1]
        return torch.tanh(self.here(vectors) + self.left(neighbours))
