"""Choices that nobody makes: beside a policy, what as many choices at random are worth."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from architectures.blocks.delayed_reward import costs_of_draws
from architectures.blocks.policy import Chooser, draws_of
from harness.objectives import Objective, Step, Supervised
from harness.training.model import Model


class ReadByLot(Objective):
    """The classifier learns from texts that are read by lot, each ``draws`` times in a step and
    anew in each pass, as often as beside a policy that learns
    (:class:`~architectures.blocks.delayed_reward.DelayedReward`)."""

    strategies = ("ddp",)

    def __init__(self, owner: Any, model: Model, inner: Supervised):
        super().__init__(owner, model, inner)
        self.draws = owner.draws

    def losses(self, model: Model, step: Step) -> dict[str, Tensor]:
        costs, _ = costs_of_draws(model, step, self.draws)
        return {"loss": costs.mean()}


class RandomChoices(Chooser):
    """In the place of a :class:`~architectures.blocks.policy.Policy`: yes to a ``share`` of the
    words, by lots, whatever is seen.

    In training a text is read otherwise each time (:class:`ReadByLot`). In evaluation lots belong
    to the text and to the start of the model: it is read in the same way each time, and another
    seed reads it in another way.
    """

    key: Tensor

    def __init__(self, share: float):
        super().__init__(self.own)
        self.share = share
        self.register_buffer("key", torch.randint(2**31, ()))

    def own(self, ids: Tensor, mask: Tensor) -> Tensor:
        """The lots of evaluation."""
        return draws_of(ids, mask, (int(self.key),), 1)[0]

    def forward(self, _: Tensor, lots: Tensor) -> tuple[Tensor, Tensor]:
        """The choices (B,) by lots (B,), true for yes. What a policy gives beside them, logarithms
        of probabilities, nobody learns from."""
        return lots < self.share, torch.zeros_like(lots)

    def tell(self, _logs: Tensor, yes: Tensor, _free: Tensor, mask: Tensor) -> Tensor:
        """The share (B,) of words for which the choice was yes."""
        return (yes & mask).sum(1) / mask.sum(1)
