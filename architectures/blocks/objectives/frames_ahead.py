"""The frames that come next in a recording, told from others of the same recording."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from harness.layers.noise import Noise
from harness.problems.audio import OFFERED, AudioObjective
from harness.problems.text_objective import Foretold
from harness.views.frames import FrameBatch

OTHERS = OFFERED - 1
"""Other frames of the recording that are offered beside the right one."""
STEPS = 12
"""Frames ahead that are foretold."""


def others(noise: Noise, lengths: Tensor, longest: int) -> Tensor:
    """Places (B, T, :data:`OTHERS`) in each recording, drawn for each of its frames and never that
    frame itself; of a recording of one frame there is none but that."""
    draws = noise.uniform(longest, OTHERS)
    found = (draws * (lengths[:, None, None] - 1)).long()
    own = torch.arange(longest, device=draws.device)[:, None]
    return (found + (found >= own)).clamp(max=longest - 1)


class FramesAhead(AudioObjective):
    """The frame that comes k frames later, for k = 1 .. :data:`STEPS`, among :data:`OTHERS` others
    that are drawn from the recording (Oord et al. 2018).

    ``encoder.ahead(frames)`` gives the vector z (B, T, size) of each frame and what is known of it
    and the frames before, c (B, T, context). The score of a frame is z W_k c, with a matrix for
    each k, and the probability that it is the right one comes from a softmax over the offered ones.
    """

    unit = f"frames ahead, each among {OTHERS} others"

    def __init__(self, encoder: Any):
        super().__init__(encoder)
        self.foretell = nn.ModuleList(nn.Linear(encoder.context, encoder.frame, bias=False) for _ in range(STEPS))

    @classmethod
    def choices(cls, view: Any) -> int:
        return OFFERED

    def forward(self, encoder: Any, read: FrameBatch, noise: Noise) -> Foretold:
        z, c = encoder.ahead(read)
        longest = z.shape[1]
        drawn = others(noise, read.lengths.to(z.device), longest)
        rows = torch.arange(len(z), device=z.device)[:, None, None]
        offered = torch.cat([z[:, :, None], z[rows, drawn]], 2)
        logs, texts = [], []
        for k, layer in enumerate(self.foretell[: longest - 1], start=1):
            scores = (offered[:, k:] @ layer(c[:, :-k])[..., None])[..., 0]
            asked = read.mask[:, k:]
            logs.append(self.logs(scores[asked]))
            texts.append(asked.nonzero()[:, 0])
        if not logs:  # recordings of one frame
            return Foretold(0 * c.sum((1, 2)), rows[:, 0, 0])
        return Foretold(torch.cat(logs), torch.cat(texts))

    @staticmethod
    def logs(scores: Tensor) -> Tensor:
        """Log-probability (N,) that of the offered frames, by their scores (N, 1 + others), the
        first is the right one."""
        return scores.log_softmax(1)[:, 0]


class FramesAheadOneByOne(FramesAhead):
    """The same, with each of the offered frames judged by itself (Schneider et al. 2019): a frame
    is the right one with probability s(z W_k c), and the log-probability of an answer is that of
    all of these judgements.

    The weight of the others in the loss is their number, so that the mean over them that the paper
    writes is their sum.
    """

    unit = f"frames ahead, and {OTHERS} others that are not, one by one"

    @staticmethod
    def logs(scores: Tensor) -> Tensor:
        return F.logsigmoid(scores[:, 0]) + F.logsigmoid(-scores[:, 1:]).sum(1)

    @classmethod
    def floor(cls, view: Any, train: Any, rows: Any) -> list[list[float]]:
        """Each judgement by the share of right frames among those that are offered."""
        shares = torch.tensor([1.0, OTHERS]) / OFFERED
        return [[float(shares.log() @ torch.tensor([1.0, OTHERS])), 1] for _ in rows]
