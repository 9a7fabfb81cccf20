"""Labels of every second frame, by a convolution."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from harness.kinds import FrameEncoder
from harness.registry import Recipe, register
from harness.views.frames import FrameBatch, Frames


@register(
    "frozen_strides",
    name="Strides",
    kind="ctc",
    paper="Nobody 2016",
    source="figure 2",
    year=2016,
    recipe=Recipe(optimizer="sgd", lr=0.002, momentum=0.9, batch_size=1, epochs=100, patience=10),
    tiny={"hidden": 32},
    variants={"frozen_strides_beam": {"name": "Strides, searched", "hyperparameters": {"beam": 3}, "version": 4}},
)
class Strides(FrameEncoder):
    """A convolution of stride 2 over filter-bank frames and their slopes, then a score for each
    label."""

    view = Frames(mels=20, deltas=1, stack=1, step_ms=12)

    def __init__(self, width: int, labels: int, hidden: int = 64, beam: int = 1):
        super().__init__()
        self.beam = beam
        self.convolution = nn.Conv1d(width, hidden, 3, stride=2, padding=1)
        self.output = nn.Linear(hidden, labels)

    def forward(self, frames: FrameBatch) -> tuple[Tensor, Tensor]:
        vectors = (frames.vectors * frames.mask[..., None]).transpose(1, 2)
        states = torch.relu(self.convolution(vectors)).transpose(1, 2)
        return self.output(states), (frames.lengths + 1) // 2
