"""A reader that looks for the words of the question in the passage."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from harness.kinds import Reader, SpanScores, pool
from harness.registry import Recipe, register
from harness.views.words import WordBatch


@register(
    "frozen_finder",
    name="Finder",
    kind="span",
    paper="Nobody 2017",
    source="section 2",
    year=2017,
    recipe=Recipe(optimizer="adamax", lr=0.005, batch_size=32, clip=10.0),
    tiny={"hidden": 32},
)
class Finder(Reader):
    """Start and end from a window of the passage, whose words say whether the question has them
    too."""

    unused = ("nothing",)  # where every question has an answer

    def __init__(self, width: int, hidden: int = 64, window: int = 9):
        super().__init__()
        self.window = nn.Conv1d(width + 1, hidden, window, padding=window // 2)
        self.output = nn.Linear(hidden, 2)
        self.nothing = nn.Linear(hidden, 1)

    def shared(self, passage: WordBatch, question: WordBatch) -> Tensor:
        """1 at passage words that the question has, by their spelling: (B, T, 1)."""
        alike = passage.spellings[:, :, None] == question.spellings[:, None]
        return (alike & question.mask[:, None] & passage.mask[..., None]).any(2, keepdim=True).float()

    def forward(self, passage: WordBatch, question: WordBatch) -> SpanScores:
        vectors = torch.cat([passage.vectors, self.shared(passage, question)], dim=-1) * passage.mask[..., None]
        states = torch.relu(self.window(vectors.transpose(1, 2)).transpose(1, 2))
        start, end = self.output(states).masked_fill(~passage.mask[..., None], -torch.inf).unbind(-1)
        return SpanScores(start, end, self.nothing(pool(states, passage.mask, "max")).squeeze(1))
