"""Gaussian latent variables, and the lower bound by which they are learnt (Kingma & Welling
2014)."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from harness.layers.noise import BITS, Noise
from harness.objectives import add_loss
from harness.problems.text_objective import Foretold


class Gaussian(NamedTuple):
    """A Gaussian for each of B texts, of independent numbers: their ``mean`` and the natural
    logarithm of their deviation, ``log_deviation``, both (B, K)."""

    mean: Tensor
    log_deviation: Tensor

    def at(self, normal: Tensor) -> Tensor:
        """Draws (B, K) made of standard normal numbers, through which gradients reach mean and
        deviation."""
        return self.mean + self.log_deviation.exp() * normal

    def divergence(self, prior: Gaussian | None = None) -> Tensor:
        """Kullback-Leibler divergence (B,) from a prior in nats; without one, from standard normal
        numbers."""
        mean, log_deviation = prior or (torch.zeros_like(self.mean), torch.zeros_like(self.mean))
        squares = (2 * self.log_deviation).exp() + (self.mean - mean).square()
        return (log_deviation - self.log_deviation + (squares * (-2 * log_deviation).exp() - 1) / 2).sum(1)


def normal(noise: Noise, *shape: int) -> Tensor:
    """Standard normal numbers (B, ...) of the texts of a noise: other ones in each pass of a
    training, the same for ever in evaluation."""
    between = noise.uniform(*shape).clamp(min=0.5**BITS)  # 0 would be infinitely far out
    return math.sqrt(2) * torch.erfinv(2 * between - 1)


def rising(progress: float, share: float) -> float:
    """Weight of the divergence that rises in a straight line from 0 to 1 over a share of the
    training; with a share of 0 it is 1 from the beginning."""
    return 1.0 if progress >= share else progress / share


def bound(told: Foretold, divergence: Tensor, weight: float, training: bool) -> Foretold:
    """The answers that were foretold with latent variables, with the divergence (B,) of these.

    In training it is added to the loss, in nats for each answer and with that weight. The curve
    has a column ``divergence`` of the whole, so that one that collapses is seen, and a column
    ``annealing`` of what the weight takes off. In evaluation it is shared among the answers of a
    text, whose sum is then the bound.
    """
    logs, texts = told
    if training:
        nats = divergence.sum() / max(1, len(logs))
        add_loss("divergence", nats)
        if weight != 1:
            add_loss("annealing", (weight - 1) * nats)
        return told
    answers = texts.bincount()
    return Foretold(logs - (divergence / answers)[texts], texts)
