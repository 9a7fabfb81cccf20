"""Time-delay neural network whose layers join frames further and further apart."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from harness.kinds import FrameEncoder
from harness.registry import Recipe, register
from harness.views.frames import FrameBatch, Frames


class Spliced(nn.Module):
    """A p-norm layer over joined positions: (B, width, T) to (B, ``units``, fewer positions).

    W [x_t; x_(t+d); ...; x_(t+(n-1)d)] + b of ``joined`` positions n, ``apart`` positions d, at
    every ``step``-th position t has ``units`` groups of ``group`` numbers. Each unit is the length
    of one group, and the units of a position are scaled to a mean square of 1.
    """

    def __init__(self, width: int, units: int, group: int, joined: int, apart: int = 1, step: int = 1):
        super().__init__()
        self.group = group
        self.affine = nn.Conv1d(width, units * group, joined, stride=step, dilation=apart)
        nn.init.normal_(self.affine.weight, std=1 / math.sqrt(units * group))
        nn.init.normal_(self.affine.bias, std=0.5)

    def forward(self, states: Tensor) -> Tensor:
        groups = self.affine(states).unflatten(1, (-1, self.group)).movedim(2, -1)
        units = torch.linalg.vector_norm(groups.contiguous(), dim=-1)  # elsewhere than last it takes 10 times as long
        return F.normalize(units, dim=1) * math.sqrt(units.shape[1])


@register(
    "tdnn_dilated",
    name="Time-delay network, dilated",
    kind="ctc",
    paper="Peddinti et al. 2015",
    source="X4.6",
    year=2015,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=4, epochs=100, patience=10),
    tiny={"units": 48, "group": 2},
    deviations=(
        (
            "Scores are those of letters and the blank, for every third frame, and trained with CTC; the paper's are of"
            " parts of phones, for every frame."
        ),
        "Frames are 40 log-mel energies, without a vector of the speaker and without a transform that is fitted first.",
        "All layers are trained from the start, and the last starts as PyTorch's do; the authors add layer by layer.",
        "Adam with batches of 4 recordings for up to 100 epochs; the authors' preconditioned SGD takes 512 frames.",
    ),
)
class DilatedTimeDelayNetwork(FrameEncoder):
    """Frames (B, T, F) to label scores (B, T / 3, labels), one for every third frame.

    The first layer joins the frames t - 2 to t + 2, the others two outputs of the layer below: t -
    1 and t + 2, t - 3 and t + 3, t - 7 and t + 2. So a score sees 13 frames before its own and 9
    behind it. What the upper layers join is 3, 6 and 9 frames apart: for every third score every
    third output of the first layer is enough. The layers are p-norm layers (:class:`Spliced`), the
    scores are linear. Beyond its ends a recording repeats its first and its last frame.
    """

    view = Frames(energy=False, stack=1)
    EVERY, BEFORE, BEHIND = 3, 13, 9
    """Frames from one score to the next, and those that a score sees before and behind its own."""

    def __init__(self, width: int, labels: int, units: int = 275, group: int = 10):
        super().__init__()
        self.layers = nn.Sequential(
            Spliced(width, units, group, joined=5, step=self.EVERY),
            *(Spliced(units, units, group, joined=2, apart=frames // self.EVERY) for frames in (3, 6, 9)),
        )
        self.output = nn.Conv1d(units, labels, 1)

    def forward(self, frames: FrameBatch) -> tuple[Tensor, Tensor]:
        lengths = (frames.lengths + self.EVERY - 1) // self.EVERY
        last = self.EVERY * (int(lengths.max()) - 1)
        times = torch.arange(-self.BEFORE, last + self.BEHIND + 1, device=frames.mask.device)
        times = torch.minimum(times.clamp(min=0), frames.lengths[:, None] - 1)
        vectors = frames.vectors.gather(1, times[..., None].expand(-1, -1, frames.vectors.shape[2]))
        return self.output(self.layers(vectors.transpose(1, 2))).transpose(1, 2), lengths
