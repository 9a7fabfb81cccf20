"""Deep Speech: a recurrent network without gates between clipped rectifiers, trained with CTC."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.recurrent import reverse
from harness.kinds import FrameEncoder
from harness.registry import Recipe, register
from harness.views.frames import FrameBatch, Frames


def clipped(sums: Tensor) -> Tensor:
    """g(z) = min(max(0, z), 20)."""
    return sums.clamp(0, 20)


@register(
    "deep_speech",
    name="Deep Speech",
    kind="ctc",
    paper="Hannun et al. 2014",
    source="X4.6",
    year=2014,
    recipe=Recipe(
        optimizer="sgd",
        lr=0.0006,
        momentum=0.99,
        batch_size=16,
        epochs=50,
        patience=10,
        clip=400.0,
        lr_schedule="step",
        factor=0.9,
        step_start=1.0,
        reduction="sentence",
    ),
    tiny={"hidden": 64, "context": 2},
    deviations=(
        "Filters are spaced as the ear hears, not linearly.",
        "Plain momentum, not Nesterov's; the paper gives neither the rate nor the factor by which it falls, and makes"
        " 15 to 20 epochs of 7,000 hours.",
        "Layers without a recurrence start as He et al. 2015 propose; the paper does not say how.",
        "A gradient longer than 400 is shortened, and a batch has 16 recordings, not thousands.",
        "Answers come from one pass, without shifted copies of the recording, other networks or a language model.",
    ),
)
class DeepSpeech(FrameEncoder):
    """Frames (B, T, F) to label scores (B, T / ``stride``, labels).

    h1 to h3 are layers g(W h + b) with g(z) = min(max(0, z), 20), the first over a frame and
    ``context`` frames on each side, of which every ``stride``-th is the middle of one. The fourth
    layer has a recurrence in each direction, g(W4 h3_t + W_r h_(t-1) + b4) and g(W4 h3_t + W_r'
    h_(t+1) + b4), with no gates and the same W4; the fifth reads the sum of both. Dropout acts on
    the four layers without a recurrence. Slow, because no fused layer has a clipped recurrence of
    2,048 units.
    """

    view = Frames(mels=80, stack=1, window_ms=20)

    def __init__(
        self,
        width: int,
        labels: int,
        hidden: int = 2048,
        context: int = 9,
        stride: int = 2,
        dropout: float = 0.1,
    ):
        super().__init__()
        self.context, self.stride, self.dropout = context, stride, nn.Dropout(dropout)
        self.before = nn.ModuleList(nn.Linear(size, hidden) for size in ((2 * context + 1) * width, hidden, hidden))
        self.shared = nn.Linear(hidden, hidden)
        self.recurrent = nn.ModuleList(nn.Linear(hidden, hidden, bias=False) for _ in range(2))
        self.behind = nn.Linear(hidden, hidden)
        self.output = nn.Linear(hidden, labels)
        for layer in (*self.before, self.shared, self.behind):  # else little of a frame is left behind five layers
            nn.init.kaiming_uniform_(layer.weight, nonlinearity="relu")
            nn.init.zeros_(layer.bias)

    def windows(self, frames: FrameBatch) -> tuple[Tensor, Tensor, Tensor]:
        """Joined frames around every ``stride``-th one, zeros beyond the ends, with mask and
        lengths."""
        inside = frames.vectors * frames.mask[..., None]
        padded = F.pad(inside, (0, 0, self.context, self.context))
        joined = padded.unfold(1, 2 * self.context + 1, self.stride).transpose(2, 3).flatten(2)
        lengths = (frames.lengths + self.stride - 1) // self.stride
        return joined, frames.mask[:, :: self.stride], lengths

    def both_ways(self, states: Tensor, mask: Tensor) -> Tensor:
        """Sum (B, T, hidden) of the recurrences in both directions, which go side by side."""
        fed = self.shared(states)
        directions = torch.stack([fed, reverse(fed, mask)])
        weights = torch.stack([each.weight.T for each in self.recurrent])
        state, found = torch.zeros_like(directions[:, :, 0]), []
        for step in directions.unbind(2):
            state = clipped(torch.baddbmm(step, state, weights))
            found.append(state)
        forwards, backwards = torch.stack(found, 2)
        return forwards + reverse(backwards, mask)

    def forward(self, frames: FrameBatch) -> tuple[Tensor, Tensor]:
        states, mask, lengths = self.windows(frames)
        for layer in self.before:
            states = self.dropout(clipped(layer(states)))
        states = self.dropout(clipped(self.behind(self.both_ways(states, mask))))
        return self.output(states), lengths
