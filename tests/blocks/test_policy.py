"""Policies: how choices are made, what is told of them, and the gradient by rewards against the
exact one."""

from __future__ import annotations

import itertools

import pytest
import torch

from architectures.blocks.policy import Policy, reinforced, repeated
from tests.support.batches import mask_of, random_texts


def policy_of(size: int = 3, start: float = 0.0) -> Policy:
    torch.manual_seed(0)
    policy = Policy(size, start)
    torch.nn.init.normal_(policy.yes.weight)
    return policy


def test_choices_are_the_likeliest_unless_they_are_drawn_or_all_are_yes():
    """A policy that draws in evaluation answers a text otherwise each time."""
    policy, seen = policy_of(), torch.randn(200, 3)
    chances = (seen @ policy.yes.weight[0] + policy.yes.bias).sigmoid()
    chosen, logs = policy(seen)
    assert torch.equal(chosen, chances > 0.5)
    torch.testing.assert_close(logs.exp(), torch.where(chosen, chances, 1 - chances))
    with policy.choosing("all"):
        chosen, logs = policy(seen)
    assert chosen.all()
    torch.testing.assert_close(logs.exp(), chances)
    count = torch.zeros(200)
    with policy.choosing("drawn"):
        for _ in range(400):
            chosen, logs = policy(seen)
            torch.testing.assert_close(logs.exp(), torch.where(chosen, chances, 1 - chances))
            count += chosen
    assert (count / 400 - chances).abs().max() < 0.13 and (count / 400 - chances).abs().mean() < 0.03
    assert torch.equal(policy(seen)[0], chances > 0.5), "afterwards the likeliest again"


def test_it_begins_inclined_to_yes():
    policy = Policy(4)
    assert policy.yes.bias.item() == 2.0
    assert policy(torch.zeros(1, 4))[1].exp().item() == pytest.approx(0.8808, abs=1e-4)


def test_what_it_looks_at_gets_no_gradient():
    """Rewards would move the states of the classifier, which is taught by labels alone."""
    policy, seen = policy_of(), torch.randn(2, 3, requires_grad=True)
    policy(seen)[1].sum().backward()
    assert seen.grad is None and policy.yes.weight.grad.any() and policy.yes.bias.grad.any()


def test_padding_is_no_choice_and_only_who_listens_is_told():
    policy = policy_of()
    mask = mask_of([3, 2])
    logs = torch.tensor([[-1.0, -2.0, -3.0], [-4.0, -5.0, -60.0]])
    yes = torch.tensor([[True, False, True], [False, True, True]])
    policy.tell(logs, yes, mask)
    with policy.choosing("best") as told:
        policy.tell(logs, yes, mask)
        policy.tell(-logs, ~yes, mask)
    assert len(told) == 2 and policy.told is None
    assert told[0].logs.tolist() == [-6.0, -9.0] and told[1].logs.tolist() == [6.0, 9.0]
    torch.testing.assert_close(told[0].share, torch.tensor([2 / 3, 1 / 2]))


def test_the_gradient_is_that_of_the_expected_reward():
    """Over all draws of three choices, each weighed by its probability, against the slope of the
    expected reward itself. The mean reward that is taken off is no bias: it is the expectation."""
    scores = torch.tensor([0.3, -1.0, 0.8], dtype=torch.float64, requires_grad=True)
    draws = torch.tensor(list(itertools.product([True, False], repeat=3)))
    logs = torch.nn.functional.logsigmoid(torch.where(draws, scores, -scores)).sum(1)
    rewards = torch.tensor([1.0, -2.0, 0.5, 3.0, 0.0, 1.5, -1.0, 2.0], dtype=torch.float64)
    expected = (logs.exp() * rewards).sum()
    (exact,) = torch.autograd.grad(-expected, scores, retain_graph=True)
    # As many draws of each sort as its probability says, out of 100,000.
    counts = (logs.detach().exp() * 100_000).round().long()
    chosen = torch.repeat_interleave(torch.arange(8), counts)
    found = reinforced(logs[chosen][:, None], rewards[chosen][:, None])
    (gradient,) = torch.autograd.grad(found, scores)
    torch.testing.assert_close(gradient, exact, rtol=1e-3, atol=1e-4)


def test_each_text_has_a_mean_of_its_own_and_rewards_are_constants():
    logs = torch.tensor([[-1.0, -2.0], [-3.0, -4.0]], requires_grad=True)
    rewards = torch.tensor([[1.0, 10.0], [3.0, 30.0]], requires_grad=True)
    found = reinforced(logs, rewards)
    assert found.item() == pytest.approx(-(-1 * -1.0 + 1 * -3.0 + -10 * -2.0 + 10 * -4.0) / 4)
    found.backward()
    assert rewards.grad is None
    assert logs.grad.tolist() == [[0.25, 2.5], [-0.25, -2.5]]


def test_a_batch_is_repeated_as_a_whole():
    words = random_texts([3, 2], seed=0, width=4)
    found = repeated(words, 3)
    assert found.ids.shape == (6, 3) and found.lengths.tolist() == [3, 2] * 3
    torch.testing.assert_close(found.vectors[4:], words.vectors)
    assert not found.static.numel()
