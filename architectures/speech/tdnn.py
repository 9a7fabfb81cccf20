"""Time-delay neural network: units that see the same few frames around every frame."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from architectures.blocks.windows import lengthen, windows_inside
from harness.kinds import FrameEncoder
from harness.registry import Recipe, register
from harness.views.frames import FrameBatch, Frames


@register(
    "tdnn",
    name="Time-delay network",
    kind="ctc",
    paper="Waibel et al. 1989",
    source="X4.6",
    year=1989,
    recipe=Recipe(optimizer="adam", lr=0.01, batch_size=16, epochs=100, patience=10),
    tiny={"hidden": 768},
    deviations=(
        "Each window is scored for every letter and the blank, and trained with CTC on whole recordings.",
        "The paper sums the squares of sigmoid outputs over 15 frames, which are one of three sounds.",
        "The second layer has a unit for each letter, not for each of three sounds; its scores are a softmax's.",
        "Energies are logarithms with mean 0 and variance 1 of the training set, not scaled to +-1.",
        "Adam with batches of 16, not back-propagation with momentum of all examples at once.",
        "The paper gives no limit to training; here it is 100 epochs, or 10 without a better dev score.",
    ),
)
class TimeDelayNetwork(FrameEncoder):
    """Frames (B, T, F) to label scores (B, T - 6, labels).

    A unit of the first layer sees a frame and the two after it, sigmoid(W [x_t; x_(t+1); x_(t+2)] +
    b); a label's score sees five of its outputs, so that 15 frames give 13 hidden vectors and 9
    scores. The weights are the same at all frames. A recording too short for one window is
    lengthened with zeros.
    """

    view = Frames(mels=16, energy=False, stack=1)
    DELAYS: ClassVar[tuple[int, int]] = (3, 5)
    """Frames that a unit of each layer sees."""

    def __init__(self, width: int, labels: int, hidden: int = 8):
        super().__init__()
        first, second = self.DELAYS
        self.hidden = nn.Conv1d(width, hidden, first)
        self.output = nn.Conv1d(hidden, labels, second)

    def forward(self, frames: FrameBatch) -> tuple[Tensor, Tensor]:
        window = sum(self.DELAYS) - 1
        vectors = lengthen(frames.vectors * frames.mask[..., None], window).transpose(1, 2)
        scores = self.output(torch.sigmoid(self.hidden(vectors)))
        return scores.transpose(1, 2), windows_inside(frames.lengths, window)
