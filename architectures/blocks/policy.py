"""Policies: choices that are drawn while a text is read, and the loss that teaches them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

Way = Literal["best", "drawn", "all"]
"""The way in which choices are made: the likeliest, one by lot, or yes to each."""


class Told(NamedTuple):
    """Of each text of a pass: the logarithm (B,) of the probability of its choices together, and
    the share (B,) of its words for which the choice was yes."""

    logs: Tensor
    share: Tensor


class Policy(nn.Module):
    """Yes or no to each word, by a linear layer and a sigmoid. No gradient goes to what it looks
    at: rewards teach the policy alone.

    It begins inclined to yes, ``start`` being the first bias: to read a text with half of its words
    is to learn another text.
    """

    def __init__(self, size: int, start: float = 2.0):
        super().__init__()
        self.yes = nn.Linear(size, 1)
        nn.init.constant_(self.yes.bias, start)
        self.way: Way = "best"
        self.told: list[Told] | None = None

    @contextmanager
    def choosing(self, way: Way) -> Iterator[list[Told]]:
        """Choose so while the block runs, and tell of each text that is read in it."""
        self.way, self.told = way, []
        try:
            yield self.told
        finally:
            self.way, self.told = "best", None

    def forward(self, seen: Tensor) -> tuple[Tensor, Tensor]:
        """The choices (B,) by what is seen (B, size), true for yes, and the logarithm (B,) of the
        probability of each."""
        scores = self.yes(seen.detach())[:, 0]
        if self.way == "drawn":
            # One of two is drawn: numbers compared with a rate count as dropout in the tests.
            chosen = torch.stack([-scores, scores], 1).sigmoid().multinomial(1)[:, 0].bool()
        elif self.way == "all":
            chosen = torch.ones_like(scores, dtype=torch.bool)
        else:
            chosen = scores > 0
        return chosen, nn.functional.logsigmoid(torch.where(chosen, scores, -scores))

    def tell(self, logs: Tensor, yes: Tensor, mask: Tensor) -> None:
        """Tell who listens of the choices of a pass: logarithms (B, T), yes or no (B, T), and which
        of them are of words (B, T)."""
        if self.told is not None:
            self.told.append(Told((logs * mask).sum(1), (yes & mask).sum(1) / mask.sum(1)))


def reinforced(logs: Tensor, rewards: Tensor) -> Tensor:
    """The loss whose gradient is that of a policy (REINFORCE, Williams 1992): the mean of -(R - b)
    log pi over draws (K, B), where b is a text's mean reward over its K draws; R and b count as
    constants."""
    advantage = (rewards - rewards.mean(0)).detach()
    return -(advantage * logs).mean()


def repeated(batch: Any, times: int) -> Any:
    """A batch of texts so many times, one behind the other."""
    return type(batch)(*(torch.cat([field] * times) if field.numel() else field for field in batch))
