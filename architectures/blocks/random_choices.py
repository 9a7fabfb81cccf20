"""Choices that nobody makes: beside a policy, what as many choices at random are worth."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from architectures.blocks.policy import draws_of


class RandomChoices(nn.Module):
    """In the place of a :class:`~architectures.blocks.policy.Policy`: yes to a ``share`` of the
    words, by lots, whatever is seen.

    Lots belong to a text and to the start of the model: a text is read in the same way each time,
    and another seed reads it in another way.
    """

    key: Tensor

    def __init__(self, share: float):
        super().__init__()
        self.share = share
        self.register_buffer("key", torch.randint(2**31, ()))

    def lots(self, words: Any) -> Tensor:
        """Numbers in [0, 1) for the words or sentences of a batch, (B, T)."""
        return draws_of(words.ids, words.mask, (int(self.key),), 1)[0]

    def forward(self, _: Tensor, lots: Tensor) -> tuple[Tensor, Tensor]:
        """The choices (B,) by lots (B,), true for yes. What a policy gives beside them, logarithms
        of probabilities, nobody learns from."""
        return lots < self.share, torch.zeros_like(lots)

    def tell(self, _logs: Tensor, yes: Tensor, _free: Tensor, mask: Tensor) -> Tensor:
        """The share (B,) of words for which the choice was yes."""
        return (yes & mask).sum(1) / mask.sum(1)
