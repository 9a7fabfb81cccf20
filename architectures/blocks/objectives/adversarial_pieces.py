"""Masked pieces that are told alike when the vectors of the text are moved a little (Liu et al.
2020)."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from architectures.blocks.objectives.masked_pieces import MaskedPieces
from architectures.blocks.variational import normal
from harness.layers.noise import Noise
from harness.objectives import add_loss
from harness.problems.text_objective import Foretold
from harness.views.subwords import SubwordBatch


def divergence(told: Tensor, other: Tensor) -> Tensor:
    """The mean over N places of the Kullback-Leibler divergence KL(told || other), of natural
    log-probabilities (N, V)."""
    return F.kl_div(other, told, reduction="sum", log_target=True) / max(1, len(told))


def repeated(device: torch.device) -> AbstractContextManager[None]:
    """A block after which torch's random numbers come again, so that the next pass drops the same
    numbers."""
    return torch.random.fork_rng([device] if device.type == "cuda" else [])


class AdversarialPieces(MaskedPieces):
    """Masked pieces, and in the second half of the training their probabilities are also kept where
    they are when the vectors of all pieces are moved to where the probabilities change most.

    The move begins at random, goes one step up the gradient of the divergence, whose largest number
    is made 1, and is cut at the encoder's ``radius`` in each number. The divergence is counted both
    ways; in each of them one side is a constant, the first time the clean one, the second time the
    moved one. All passes drop the same numbers. Such a step costs about three times that of masked
    pieces alone.
    """

    begins = last_phase = 0.5
    factor = 10.0
    spread, step = 1.0, 100.0
    """Deviation of the start, and length of the step in the largest number, in radii."""

    def __init__(self, encoder: Any):
        super().__init__(encoder)
        self.radius: float = encoder.radius

    def forward(self, encoder: Any, pieces: SubwordBatch, noise: Noise) -> Foretold:
        if not noise.anew or noise.progress < self.begins:
            return super().forward(encoder, pieces, noise)
        chosen = self.chosen(pieces, encoder.view, noise)
        read = pieces._replace(ids=self.hidden(pieces.ids, chosen, encoder.view, noise))
        vectors = encoder.table(read.ids)

        def told(moved: Tensor) -> Tensor:
            """Natural log-probabilities (N, V) of all pieces in the chosen places."""
            return self.scores.scores(encoder, encoder(read, moved)[chosen]).log_softmax(-1)

        with repeated(vectors.device):
            clean = told(vectors)
        start = self.spread * self.radius * normal(noise, *vectors.shape[1:]).to(vectors)
        start.requires_grad_()
        with repeated(vectors.device):
            change = divergence(clean, told(vectors + start))
        (slope,) = torch.autograd.grad(change, start)
        moved = told(vectors + self.cut(start.detach(), slope))
        both = divergence(clean.detach(), moved) + divergence(moved.detach(), clean)
        add_loss("adversarial", self.factor * both)
        return Foretold.at(clean.gather(1, pieces.ids[chosen][:, None]).squeeze(1), chosen)

    def cut(self, start: Tensor, slope: Tensor) -> Tensor:
        """The move (B, T, D) that begins at ``start`` and goes a step up the ``slope`` of each
        text."""
        largest = slope.abs().amax((1, 2), keepdim=True).clamp(min=torch.finfo(slope.dtype).tiny)
        return (start + self.step * self.radius * slope / largest).clamp(-self.radius, self.radius)
