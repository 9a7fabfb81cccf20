"""Policies: how choices are made, whose lots decide, what is told of them, and the gradient by
rewards against the exact one."""

from __future__ import annotations

import itertools

import pytest
import torch

from architectures.blocks.policy import Policy, drawn, draws_of, every, likeliest, reinforced, repeated, where
from tests.support.batches import mask_of, random_documents, random_texts


def policy_of(size: int = 3, start: float = 0.0, before=likeliest) -> Policy:
    torch.manual_seed(0)
    policy = Policy(size, start, before)
    torch.nn.init.normal_(policy.yes.weight)
    return policy


def numbered(lengths: list[int]):
    """Texts whose words all have other numbers."""
    texts = random_texts(lengths, seed=0, width=4)
    return texts._replace(ids=torch.arange(1, texts.mask.numel() + 1).view(texts.mask.shape) * texts.mask)


def test_a_choice_is_yes_where_its_lot_is_below_the_probability():
    policy, seen = policy_of(), torch.randn(200, 3)
    chances = (seen @ policy.yes.weight[0] + policy.yes.bias).sigmoid()
    lots = torch.rand(200)
    chosen, logs = policy(seen, lots)
    assert torch.equal(chosen, lots < chances)
    torch.testing.assert_close(logs.exp(), torch.where(chosen, chances, 1 - chances))


def test_it_begins_inclined_as_it_is_told():
    policy = Policy(4, 2.0, likeliest)
    assert policy.yes.bias.item() == 2.0
    assert policy(torch.zeros(1, 4), torch.zeros(1))[1].exp().item() == pytest.approx(0.8808, abs=1e-4)


def test_what_it_looks_at_gets_no_gradient():
    """Rewards would move the states of the classifier, which is taught by labels alone."""
    policy, seen = policy_of(), torch.randn(2, 3, requires_grad=True)
    policy(seen, torch.rand(2))[1].sum().backward()
    assert seen.grad is None and policy.yes.weight.grad.any() and policy.yes.bias.grad.any()


def test_the_likelier_choice_every_third_word_and_all_words():
    words = numbered([4, 2])
    policy, seen = policy_of(), torch.randn(2, 3)
    likelier = (seen @ policy.yes.weight[0] + policy.yes.bias) > 0
    assert torch.equal(policy(seen, likeliest(words.ids, words.mask)[:, 0])[0], likelier)
    assert likeliest(words.ids, words.mask).shape == every(3)(words.ids, words.mask).shape == (2, 4)
    for start in (-200.0, 200.0):  # whatever is likely, even where its probability is rounded to 0 or 1
        with torch.no_grad():
            policy.yes.bias.fill_(start)
        for step, wanted in ((3, [False, False, True, False]), (1, [True] * 4)):
            lots = every(step)(words.ids, words.mask)
            found = [policy(seen, lots[:, place])[0].tolist() for place in range(4)]
            assert found == [[each, each] for each in wanted]


def test_who_has_not_learnt_does_not_act():
    """In evaluation during the first phase the policy is any: a dev score by it would say nothing
    of the classifier. What it has learnt is kept with its weights."""
    words, policy = numbered([4, 2]), policy_of(before=every(3))
    assert torch.equal(policy.lots(words), every(3)(words.ids, words.mask))
    with policy.choosing(every(2)):
        assert torch.equal(policy.lots(words), every(2)(words.ids, words.mask))
    assert torch.equal(policy.lots(words), every(3)(words.ids, words.mask))
    policy.acts.fill_(True)
    assert torch.equal(policy.lots(words), torch.full((2, 4), 0.5))
    other = policy_of(before=every(3))
    other.load_state_dict(policy.state_dict())
    assert torch.equal(other.lots(words), torch.full((2, 4), 0.5))


def test_lots_belong_to_a_text_and_are_other_ones_in_each_draw_and_pass():
    """Batches may be cut anyhow: on one device and on several the same is drawn."""
    together, alone = numbered([5, 3, 4]), numbered([5, 3, 4])
    found = draws_of(together.ids, together.mask, (7, 1), 6)
    assert found.shape == (6, 3, 5) and (found >= 0).all() and (found < 1).all()
    for row, length in enumerate([5, 3, 4]):
        ids, mask = (each[[row], :length] for each in (alone.ids, alone.mask))
        torch.testing.assert_close(draws_of(ids, mask, (7, 1), 6)[:, 0], found[:, row, :length])
    assert len(found.unique()) == found.numel()
    for key in ((7, 2), (8, 1)):
        assert not (draws_of(together.ids, together.mask, key, 6) == found).any()
    turned = draws_of(together.ids.flip(0), together.mask.flip(0), (7, 1), 6)
    torch.testing.assert_close(turned, found.flip(1))
    batch = repeated(together, 6)
    torch.testing.assert_close(drawn((7, 1), 6)(batch.ids, batch.mask), found.flatten(0, 1))


def test_lots_of_sentences_know_nothing_of_the_padding_between_them():
    lengths = [[2, 4, 1], [3]]
    document, _ = random_documents(lengths, seed=0, width=2)
    document = document._replace(ids=torch.arange(1, document.ids.numel() + 1).view(document.ids.shape) * document.mask)
    found = draws_of(document.ids, document.mask, (0, 1), 4)
    assert found.shape == (4, 2, 3)
    wider = torch.nn.functional.pad(document.ids, (0, 3, 0, 2)), torch.nn.functional.pad(document.mask, (0, 3, 0, 2))
    torch.testing.assert_close(draws_of(*wider, (0, 1), 4)[..., :3], found)


def test_many_lots_are_even():
    words = numbered([40])
    found = draws_of(words.ids, words.mask, (0, 1), 500)
    assert found.mean().item() == pytest.approx(0.5, abs=0.01)
    assert (found < 0.25).double().mean().item() == pytest.approx(0.25, abs=0.01)


def test_padding_and_forced_choices_are_none_and_only_who_listens_is_told():
    policy = policy_of()
    mask = mask_of([3, 2])
    logs = torch.tensor([[-1.0, -2.0, -3.0], [-4.0, -5.0, -60.0]])
    yes = torch.tensor([[True, False, True], [False, True, True]])
    free = torch.tensor([[True, True, False], [True, True, True]])
    shares = torch.tensor([2 / 3, 1 / 2])
    torch.testing.assert_close(policy.tell(logs, yes, free, mask), shares)
    with policy.choosing(likeliest) as told:
        policy.tell(logs, yes, mask, mask)
        policy.tell(-logs, ~yes, free, mask)
    assert len(told) == 2 and policy.told is None
    assert told[0].logs.tolist() == [-6.0, -9.0] and told[1].logs.tolist() == [3.0, 9.0]
    torch.testing.assert_close(told[0].share, shares)
    torch.testing.assert_close(told[1].share, 1 - shares)


def test_a_state_is_new_where_it_is_chosen():
    new, old = ((torch.full((2, 3), number), torch.full((2, 3), number + 1)) for number in (1.0, 5.0))
    h, c = where(torch.tensor([True, False]), new, old)
    assert h.tolist() == [[1.0] * 3, [5.0] * 3] and c.tolist() == [[2.0] * 3, [6.0] * 3]


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
