"""Moving average of the trained parameters, with which dev is scored."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from harness.settings import TrainingSettings


def begun(model: nn.Module) -> dict[str, Tensor]:
    """An average of the weights as they are, by name."""
    return {n: p.detach().clone() for n, p in model.named_parameters() if p.requires_grad}


def share_kept(settings: TrainingSettings, steps: int) -> float:
    """The share of itself that an average keeps after the step behind ``steps`` others."""
    return min(settings.averaging, (1 + steps) / (10 + steps)) if settings.averaging_warmup else settings.averaging


@torch.no_grad()
def follow(average: dict[str, Tensor], model: nn.Module, share: float) -> None:
    """Move the average of the weights towards the weights; it keeps ``share`` of itself."""
    for name, parameter in model.named_parameters():
        if name in average:
            average[name].lerp_(parameter, 1 - share)


@torch.no_grad()
def exchange(average: dict[str, Tensor] | None, model: nn.Module) -> None:
    """Put the averaged weights in the place of the weights, and these in theirs."""
    for name, parameter in model.named_parameters():
        if average is not None and name in average:
            kept = parameter.clone()
            parameter.copy_(average[name])
            average[name].copy_(kept)
