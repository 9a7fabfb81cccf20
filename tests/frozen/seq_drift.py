"""Drifting states: each position beside the mean of what came before it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from harness.kinds import SequenceEncoder
from harness.registry import Recipe, register


@register(
    "frozen_drift",
    name="Drifting states",
    kind="seq",
    paper="Nobody 2019",
    source="section 2",
    year=2019,
    recipe=Recipe(optimizer="adam", lr=0.002, batch_size=16, epochs=6, patience=2, clip=5.0),
    tiny={"hidden": 24},
)
class Drift(SequenceEncoder):
    """h_t = tanh(U x_t + V m_t), m_t the mean of x_1 to x_t; a text is the mean of its states."""

    pooling = "mean"

    def __init__(self, width: int, hidden: int = 96, dropout: float = 0.1):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.here, self.before = nn.Linear(width, hidden), nn.Linear(width, hidden, bias=False)
        self.size = hidden

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        vectors = self.dropout(vectors)
        counts = torch.arange(1, vectors.shape[1] + 1, device=vectors.device)[:, None]
        return torch.tanh(self.here(vectors) + self.before(vectors.cumsum(1) / counts))


@register(
    "frozen_drift_focus",
    name="Drifting states, focused",
    kind="seq",
    paper="Nobody 2020",
    source="section 3",
    year=2020,
    recipe=Recipe(optimizer="adamw", lr=0.001, weight_decay=0.01, lr_schedule="linear", warmup_steps=10),
    tiny={"hidden": 24},
    deviations=("The query is learnt, not the last state.",),
)
class FocusedDrift(Drift):
    """The same states; a text is their mean, weighted by a softmax of their product with a
    query."""

    unused = ("query",)  # a task that reads every state pools none

    def __init__(self, width: int, hidden: int = 96, dropout: float = 0.1):
        super().__init__(width, hidden, dropout)
        self.query = nn.Parameter(torch.randn(hidden) / hidden**0.5)

    def pooled(self, states: Tensor, mask: Tensor) -> Tensor:
        weights = (states @ self.query).masked_fill(~mask, -torch.inf).softmax(1)
        return (weights[:, None] @ states).squeeze(1)
