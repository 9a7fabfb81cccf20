"""Mean of word vectors in which frequent words weigh little."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch import Tensor, nn

from harness.kinds import TextEncoder
from harness.registry import Recipe, register
from harness.views.base import View
from harness.views.words import WordBatch, Words


@register(
    "frozen_weighted",
    name="Weighted mean",
    kind="text",
    paper="Nobody 2017",
    source="equation 1",
    year=2017,
    recipe=Recipe(optimizer="adagrad", lr=0.05, batch_size=32, epochs=10, vector_dims=40),
    tiny={"hidden": 16, "longest": 12},
    version=3,
)
class WeightedMean(TextEncoder):
    """Word vectors weigh a / (a + p), p a word's share of the training text; then a hidden layer.

    The view reads ``longest`` words of a text, and keeps words seen ``rarest`` times.
    """

    def __init__(
        self, width: int, view: Words, hidden: int = 64, smooth: float = 0.01, longest: int = 50, rarest: int = 1
    ):
        super().__init__()
        counts = torch.tensor([0, 1, *view.vocabulary.counts], dtype=torch.float)
        self.register_buffer("weights", smooth / (smooth + counts / counts.sum()))
        self.hidden = nn.Sequential(nn.Linear(width, hidden), nn.Tanh())
        self.size = hidden

    @classmethod
    def reads(cls, column: str, hyperparameters: dict[str, Any]) -> View | None:
        view = super().reads(column, hyperparameters)
        names = {"longest": "max_length", "rarest": "min_count"}
        wanted = {field: hyperparameters[name] for name, field in names.items() if name in hyperparameters}
        return None if view is None else dataclasses.replace(view, **wanted)

    def forward(self, words: WordBatch) -> Tensor:
        weights = self.weights[words.ids] * words.mask
        return self.hidden((weights[:, None] @ words.vectors).squeeze(1) / words.lengths[:, None])
