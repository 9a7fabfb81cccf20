"""The pairwise hinge against a written-out loop over pairs."""

from __future__ import annotations

import pytest
import torch

from architectures.blocks.ranking import pairwise_hinge_loss, sampled_softmax_loss, worst_negative_hinge_loss

SCORES = [0.9, 0.4, -0.2, 0.7, 0.1, 0.3, 0.5, 0.6]
LABELS = [1, 0, 0, 0, 1, 0, 1, 0]
GROUPS = [7, 7, 7, 7, 7, 2, 3, 3]
"""Question 7 has two right and three wrong candidates, 2 no right one, 3 one of each."""


@pytest.mark.parametrize("margin", [0.3, 1.0])
def test_every_right_candidate_meets_every_wrong_one_of_its_own_question_and_no_other(margin):
    pairs = [(i, j) for i in range(8) for j in range(8) if LABELS[i] == 1 and LABELS[j] == 0 and GROUPS[i] == GROUPS[j]]
    losses = [max(0.0, margin - SCORES[i] + SCORES[j]) for i, j in pairs]
    assert len(pairs) == 7
    found = pairwise_hinge_loss(torch.tensor(SCORES), torch.tensor(LABELS), torch.tensor(GROUPS), margin)
    assert found.item() == pytest.approx(sum(losses) / 7)


def test_a_pair_beyond_the_margin_gives_no_gradient():
    scores = torch.tensor([0.9, 0.2, 0.7], requires_grad=True)
    pairwise_hinge_loss(scores, torch.tensor([1, 0, 0]), torch.zeros(3), margin=0.3).backward()
    assert scores.grad.tolist() == [-0.5, 0.0, 0.5]


@pytest.mark.parametrize(
    "loss",
    [
        lambda *batch: pairwise_hinge_loss(*batch, margin=1.0),
        lambda *batch: worst_negative_hinge_loss(*batch, negatives=1, margin=1.0),
        lambda *batch: sampled_softmax_loss(*batch, negatives=1),
    ],
    ids=["pairwise", "worst", "softmax"],
)
def test_the_loss_of_one_pair_is_not_that_of_two_nor_of_none(loss):
    """A mean over pairs that counts one as two would halve the steps of small batches."""
    pair = torch.tensor([0.3, 0.5]), torch.tensor([1, 0]), torch.zeros(2)
    twice = torch.tensor([0.3, 0.5] * 2), torch.tensor([1, 0] * 2), torch.tensor([0.0, 0.0, 1.0, 1.0])
    assert loss(*pair).item() > 0.5
    torch.testing.assert_close(loss(*pair), loss(*twice))


@pytest.mark.parametrize("labels", [[0, 0], [1, 1]])
def test_a_batch_without_a_pair_has_zero_loss_and_can_still_be_differentiated(labels):
    scores = torch.tensor([0.3, 0.1], requires_grad=True)
    loss = pairwise_hinge_loss(scores, torch.tensor(labels), torch.zeros(2), margin=1.0)
    loss.backward()
    assert loss.item() == 0 and scores.grad.tolist() == [0.0, 0.0]
