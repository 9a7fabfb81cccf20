"""Classes as prototypes: the nearest one is the answer."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from harness.kinds import TextEncoder, pool
from harness.registry import Recipe, register
from harness.views.words import WordBatch


@register(
    "frozen_prototypes",
    name="Prototypes",
    kind="text",
    paper="Nobody 2018",
    source="equations 2 and 3",
    year=2018,
    recipe=Recipe(optimizer="sgd", lr=0.5, momentum=0.9, batch_size=16, lr_schedule="inverse_epoch", decay=0.05),
    tiny={"hidden": 16},
)
class Prototypes(TextEncoder):
    """Scores (B, classes) are negative squared distances to a point for each class; hinge loss."""

    def __init__(self, width: int, classes: int, hidden: int = 64, margin: float = 1.0):
        super().__init__()
        self.margin = margin
        self.hidden = nn.Sequential(nn.Linear(width, hidden), nn.Tanh())
        self.points = nn.Parameter(torch.randn(classes, hidden) / 2)

    def forward(self, words: WordBatch) -> Tensor:
        vectors = self.hidden(pool(words.vectors, words.mask, "mean"))
        return -(vectors[:, None] - self.points).square().sum(-1)

    def objective(self, scores: Tensor, labels: Tensor) -> Tensor:
        return F.multi_margin_loss(scores, labels, margin=self.margin)
