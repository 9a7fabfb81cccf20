"""My model: one sentence on what it is."""

from __future__ import annotations

import torch
from torch import nn

from harness.kinds import Reader, SpanScores
from harness.layers.attention import masked_softmax
from harness.registry import Recipe, register
from harness.views.words import WordBatch


@register(
    "my_model",
    name="My model",
    kind="span",
    paper="Author & Author 2000",
    source="section or equation that this follows",
    year=2000,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=32, epochs=10),
    tiny={"hidden": 8},
)
class MyModel(Reader):
    """Each passage word p attends over the question, which gives q; start and end are scored from
    [p, q, p * q] of the word and its two neighbours.

    Say here what the paper does, and where.
    """

    def __init__(self, width: int, hidden: int = 100, dropout: float = 0.2):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.window = nn.Conv1d(3 * width, hidden, kernel_size=3, padding=1)
        self.output = nn.Linear(hidden, 2)

    def forward(self, passage: WordBatch, question: WordBatch) -> SpanScores:
        p, questions = self.dropout(passage.vectors), self.dropout(question.vectors)
        attention = masked_softmax(p @ questions.transpose(1, 2), question.mask[:, None])
        q = attention @ questions
        features = torch.cat([p, q, p * q], dim=2) * passage.mask[..., None]
        states = torch.tanh(self.window(features.transpose(1, 2)).transpose(1, 2))
        scores = self.output(states).masked_fill(~passage.mask[..., None], -torch.inf)
        return SpanScores(start=scores[..., 0], end=scores[..., 1])
