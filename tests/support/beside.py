"""Systems that are trained on several tasks, for tests that look at one part of the harness."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from harness.kinds import TextEncoder
from harness.objectives import MultiTask
from harness.registry import Recipe, register


@register(
    "beside",
    name="Several tasks at once",
    kind="text",
    paper="nobody",
    source="test",
    year=2026,
    recipe=Recipe(lr=0.01, batch_size=16, epochs=2, vector_dims=8),
    variants={"beside_pairs": {"hyperparameters": {"companions": ("snli", "wikiqa")}}},
)
class Beside(TextEncoder):
    """Mean of the vectors through a layer of all tasks, and one of each."""

    trained_by = MultiTask

    def __init__(self, width: int, companions: tuple[str, ...] = ("sst2", "sst5", "imdb"), size: int = 6):
        super().__init__()
        self.companions, self.size = companions, size
        self.shared = nn.Linear(width, size)
        self.private = nn.ModuleList(nn.Linear(size, size) for _ in (0, *companions))

    def forward(self, words: Any) -> Tensor:
        mean = (words.vectors * words.mask[..., None]).sum(1) / words.mask.sum(1, keepdim=True)
        return torch.tanh(self.private[self.member](torch.tanh(self.shared(mean))))
