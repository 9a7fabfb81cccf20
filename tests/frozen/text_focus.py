"""Attention that must not look at one word alone."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from harness.kinds import TextEncoder
from harness.registry import Recipe, register
from harness.views.words import WordBatch


@register(
    "frozen_focus",
    name="Wide focus",
    kind="text",
    paper="Nobody 2021",
    source="equation 4",
    year=2021,
    recipe=Recipe(optimizer="adam", lr=0.001, lr_schedule="warmup_inverse_sqrt", warmup_steps=20, clip=1.0),
    tiny={"hidden": 16},
    deviations=("Two texts are compared by their vectors.", "The penalty is a mean over the batch, not a sum."),
)
class WideFocus(TextEncoder):
    """A mean of word vectors by learnt weights; the sum of their squares is a term of the loss."""

    vectors = "static"
    head_bias = False

    def __init__(self, width: int, hidden: int = 64, penalty: float = 0.1):
        super().__init__()
        self.penalty = penalty
        self.score = nn.Sequential(nn.Linear(width, hidden), nn.Tanh(), nn.Linear(hidden, 1, bias=False))
        self.hidden = nn.Sequential(nn.Linear(width, hidden), nn.Tanh())
        self.size = hidden
        self._terms: list[Tensor] = []

    def forward(self, words: WordBatch) -> Tensor:
        weights = self.score(words.vectors).squeeze(-1).masked_fill(~words.mask, -torch.inf).softmax(1)
        if self.training:
            self._terms.append(weights.square().sum(1).mean())
        return self.hidden((weights[:, None] @ words.vectors).squeeze(1))

    def auxiliary_loss(self) -> Tensor | float:
        terms, self._terms = self._terms, []
        return self.penalty * sum(terms)
