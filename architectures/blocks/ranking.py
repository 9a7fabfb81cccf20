"""Losses over the candidates of a question, of which some are right and the others wrong."""

from __future__ import annotations

import torch
from torch import Tensor


def sampled_negatives(scores: Tensor, labels: Tensor, groups: Tensor, count: int) -> Tensor:
    """Scores (B, count) of wrong candidates of each row's own question, drawn without replacement;
    -inf where there are no more.

    Fewer columns when the batch has fewer rows.
    """
    wrong = (groups[:, None] == groups) & (labels == 0)
    # Random numbers in [0, 1) are an order of the wrong candidates; the others are -1 and come
    # last.
    order = torch.rand(wrong.shape, device=scores.device).masked_fill(~wrong, -1.0)
    drawn, rows = order.topk(min(count, len(scores)), dim=1)
    return scores[rows].masked_fill(drawn < 0, -torch.inf)


def _mean_over_right(losses: Tensor, labels: Tensor, negatives: Tensor) -> Tensor:
    """Mean over the right candidates that have a wrong one beside them; zero, still with a
    gradient, where there is none."""
    counted = (labels == 1) & (negatives > -torch.inf).any(1)
    return (losses * counted).sum() / counted.sum().clamp(min=1)


def sampled_softmax_loss(scores: Tensor, labels: Tensor, groups: Tensor, negatives: int) -> Tensor:
    """-log of a right candidate's probability in the softmax over itself and ``negatives`` drawn
    wrong ones of its question.

    Scores (B,), labels (B,) in 0/1 and the number of each row's question ``groups`` (B,); mean over
    the right candidates. Huang et al. 2013, equations 5 and 6.
    """
    wrong = sampled_negatives(scores, labels, groups, negatives)
    losses = torch.cat([scores[:, None], wrong], dim=1).logsumexp(1) - scores
    return _mean_over_right(losses, labels, wrong)


def worst_negative_hinge_loss(scores: Tensor, labels: Tensor, groups: Tensor, negatives: int, margin: float) -> Tensor:
    """max(0, margin - right + wrong) with the best scored of ``negatives`` drawn wrong candidates;
    arguments and mean as above."""
    wrong = sampled_negatives(scores, labels, groups, negatives)
    losses = torch.relu(margin - scores + wrong.amax(1))
    return _mean_over_right(losses, labels, wrong)


def pairwise_hinge_loss(scores: Tensor, labels: Tensor, groups: Tensor, margin: float) -> Tensor:
    """Mean of max(0, margin - right + wrong) over all pairs of a right and a wrong candidate of the
    same question.

    Scores (B,), labels (B,) in 0/1 and the number of each row's question ``groups`` (B,). Zero,
    still with a gradient, without a pair.
    """
    pairs = (groups[:, None] == groups) & (labels == 1)[:, None] & (labels == 0)
    losses = torch.relu(margin - scores[:, None] + scores)
    return (losses * pairs).sum() / pairs.sum().clamp(min=1)
