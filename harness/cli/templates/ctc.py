"""My model: one sentence on what it is."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from harness.kinds import FrameEncoder
from harness.registry import Recipe, register
from harness.views.frames import FrameBatch


@register(
    "my_model",
    name="My model",
    kind="ctc",
    paper="Author & Author 2000",
    source="section or equation that this follows",
    year=2000,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=16, epochs=20),
    tiny={"hidden": 128},
)
class MyModel(FrameEncoder):
    """Scores of a frame's labels (0 is the blank) from the frame and its three neighbours on either
    side. Say here what the paper does, and where."""

    def __init__(self, width: int, labels: int, hidden: int = 200, dropout: float = 0.2):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.window = nn.Conv1d(width, hidden, kernel_size=7, padding=3)
        self.output = nn.Linear(hidden, labels)

    def forward(self, frames: FrameBatch) -> tuple[Tensor, Tensor]:
        vectors = self.dropout(frames.vectors) * frames.mask[..., None]
        states = torch.tanh(self.window(vectors.transpose(1, 2)).transpose(1, 2))
        return self.output(states), frames.lengths
