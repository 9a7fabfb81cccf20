"""The codes of frames that an encoder of recordings does not see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from harness.layers.noise import Noise
from harness.problems.audio import AudioObjective
from harness.problems.language_model import Surprise
from harness.problems.text_objective import Foretold
from harness.task import Row
from harness.views.coded_frames import CodedBatch

SPAN = 10
"""Frames that are masked from a start on."""
STARTS = 0.08
"""Share of frames at which a span starts; spans may overlap."""
WIDTH = 256
"""Width of the vectors that are compared."""
TEMPERATURE = 0.1


def hidden_frames(noise: Noise, mask: Tensor) -> Tensor:
    """True (B, T) at the frames that are masked: :data:`SPAN` from each start on, of which a
    recording has one at least."""
    draws = noise.uniform(mask.shape[1]).masked_fill(~mask, 1.0)
    starts = (draws < STARTS) | (draws == draws.amin(1, keepdim=True))
    reached = F.max_pool1d(F.pad(starts.to(draws.dtype)[:, None], (SPAN - 1, 0)), SPAN, 1)[:, 0]
    return (reached > 0) & mask


class MaskedCodes(AudioObjective):
    """The codes of masked frames (Hsu et al. 2021).

    ``encoder.states(vectors, mask, hidden)`` gives states (B, T, size) of recordings with hidden
    frames. The probability of a code is the softmax of cos(A o, e) / :data:`TEMPERATURE`, where o
    is the state of the frame and e the vector of the code. Frames that are seen are not asked.
    """

    unit = "codes of masked frames"

    def __init__(self, encoder: Any):
        super().__init__(encoder)
        self.project = nn.Linear(encoder.size, WIDTH)
        self.codes = nn.Parameter(torch.empty(encoder.view.codes, WIDTH).uniform_())

    @classmethod
    def choices(cls, view: Any) -> int:
        return view.codes

    def heard(self, encoder: Any, read: CodedBatch, noise: Noise) -> Tensor:
        """The frames (B, T, width) that the encoder is given."""
        return read.vectors

    def forward(self, encoder: Any, read: CodedBatch, noise: Noise) -> Foretold:
        hidden = hidden_frames(noise, read.mask)
        states = encoder.states(self.heard(encoder, read, noise), read.mask, hidden)
        cosines = F.normalize(self.project(states[hidden]), dim=1) @ F.normalize(self.codes, dim=1).T
        logs = (cosines / TEMPERATURE).log_softmax(1)
        return Foretold.at(logs.gather(1, read.codes[hidden][:, None])[:, 0], hidden)

    @classmethod
    def floor(cls, view: Any, train: Sequence[Row], rows: Sequence[Row]) -> list[Surprise]:
        """Each code by its share of the training frames, every one counted once more."""
        logs = np.log((view.counts + 1) / (view.counts + 1).sum())
        found = (logs[view.nearest(view.cepstra(row["audio"]))] for row in rows)
        return [[float(each.sum()), len(each)] for each in found]


class MaskedCodesOfMixtures(MaskedCodes):
    """The same of recordings over part of which another voice is laid (Chen et al. 2022), whose
    codes are not asked: the encoder learns to hear one voice out of two.

    In a share :data:`MIXED` of the recordings, half of the frames at most, from a place on, also
    have the power of as many frames of the same recording, turned round in time, whose energy is
    between :data:`QUIETEST` and :data:`LOUDEST` decibels of it.
    """

    unit = "codes of masked frames of mixtures"
    MIXED, QUIETEST, LOUDEST = 0.2, -5.0, 5.0

    def heard(self, encoder: Any, read: CodedBatch, noise: Noise) -> Tensor:
        if not noise.anew:
            return read.vectors
        draws, lengths = noise.uniform(4)[:, :, None], read.lengths.to(read.vectors.device)[:, None]
        longest = read.vectors.shape[1]
        places = torch.arange(longest, device=lengths.device)
        stretch = (draws[:, 1] * (lengths // 2)).ceil()
        begin = (draws[:, 2] * (lengths - stretch + 1)).floor()
        over = (draws[:, 0] < self.MIXED) & (places >= begin) & (places < begin + stretch)
        turned = (lengths - 1 - places).clamp(min=0)
        rows = torch.arange(len(lengths), device=lengths.device)[:, None]
        decibels = self.QUIETEST + draws[:, 3] * (self.LOUDEST - self.QUIETEST)
        mean, deviation = encoder.scale(read.vectors)
        own = read.vectors * deviation + mean
        louder = (decibels * np.log(10) / 10)[..., None]
        both = torch.logaddexp(own, own[rows, turned] + louder)
        return torch.where(over[..., None], (both - mean) / deviation, read.vectors)
