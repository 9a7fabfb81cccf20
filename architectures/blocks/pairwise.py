"""The loss over every pair of a right and a wrong candidate of one question."""

from __future__ import annotations

import torch
from torch import Tensor


def pairwise_hinge_loss(scores: Tensor, labels: Tensor, groups: Tensor, margin: float) -> Tensor:
    """Mean of max(0, margin - right + wrong) over all pairs of a right and a wrong candidate of the same question.

    Scores (B,), labels (B,) in 0/1 and the number of each row's question ``groups`` (B,). Zero, still with a gradient, without a pair.
    """
    pairs = (groups[:, None] == groups) & (labels == 1)[:, None] & (labels == 0)
    losses = torch.relu(margin - scores[:, None] + scores)
    return (losses * pairs).sum() / pairs.sum().clamp(min=1)
