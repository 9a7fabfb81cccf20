"""A policy that is taught by the reward of a whole text, beside the classifier that reads by it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from architectures.blocks.policy import Told, drawn, reinforced, repeated
from harness.objectives import Objective, Step, Supervised
from harness.training.model import Model

ALONE, ACTING = 1 / 6, 5 / 12
"""Shares of a training at which the classifier has learnt alone, and the policy alone."""


class DelayedReward(Objective):
    """The classifier learns alone, then the policy alone, then both from texts of which the policy
    draws the choices (Zhang et al. 2018).

    The encoder has the ``policy``, the number of ``draws`` of each text, ``gamma``, the ``rate`` of
    the policy's loss, and the ``price`` of a share of words for which the choice was yes. The
    reward of a draw is the logarithm of the probability of the right class minus the price times
    ``gamma`` times the number of classes. Until the policy learns, choices are those that it makes
    before that.
    """

    strategies = ("ddp",)
    last_phase = ACTING

    def __init__(self, owner: Any, model: Model, inner: Supervised):
        super().__init__(owner, model, inner)
        self.draws, self.gamma, self.rate = owner.draws, owner.gamma, owner.rate

    def losses(self, model: Model, step: Step) -> dict[str, Tensor]:
        policy = model.encoder.policy
        policy.acts.fill_(step.progress >= ALONE)
        if step.progress < ALONE:
            with policy.choosing(policy.before):
                return self.inner.losses(model, step)
        costs, told = costs_of_draws(model, step, self.draws)
        logs = sum(each.logs for each in told).view(self.draws, -1)
        prices = torch.stack([model.encoder.price(each.share) for each in told]).mean(0).view(self.draws, -1)
        acting = self.rate * reinforced(logs, -costs - self.gamma * len(model.head.target.labels) * prices)
        known = costs.mean()
        loss = acting if step.progress < ACTING else acting + known
        share = torch.stack([each.share for each in told]).mean()
        return {"loss": loss, "task": known, "policy": acting, "chosen": share}


def costs_of_draws(model: Model, step: Step, draws: int) -> tuple[Tensor, list[Told]]:
    """The supervised loss (draws, B) of each text of a step, read so many times by choices that are
    drawn, and what was told of them."""
    inputs = {field: repeated(batch, draws) for field, batch in model.read(step.batch.inputs).items()}
    with model.encoder.policy.choosing(drawn((step.seed, step.passes), draws)) as told:
        outputs = model.head(model.encoder, inputs)
    return model.head.row_losses(model.encoder, outputs, step.batch.target.repeat(draws)).view(draws, -1), told


def rewarded_for_classes(type: str) -> str | None:
    """The reason why a policy cannot be rewarded on tasks of a type, or None."""
    return (
        None
        if type in ("classify", "match")
        else f"is rewarded for the class of each text, and a task of type {type} has none"
    )
