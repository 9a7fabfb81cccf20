"""The mechanism of HS-LSTM: words within a phrase, phrases within a text, and a reward of the whole
text that teaches where phrases end."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from architectures.blocks import delayed_reward
from architectures.blocks.delayed_reward import DelayedReward
from architectures.blocks.policy import Policy, every
from architectures.reinforcement.hs_lstm import HierarchicallyStructuredLSTM
from harness import registry
from harness.objectives import collected_choices
from harness.training.model import Model
from tests.support.acting import classifier, mean_gradients, step_of
from tests.support.batches import assert_each_alone, random_texts
from tests.support.models import small
from tests.support.moving_vectors import TEXTS, view_of
from tests.support.oracles import lstm, lstm_step

HIDDEN, WIDTH = 3, 4
LENGTHS = [6, 3, 2, 1]


def encoder(acts: bool = True, start: float = 0.0) -> HierarchicallyStructuredLSTM:
    model = small(HierarchicallyStructuredLSTM, width=WIDTH, hidden=HIDDEN, dropout=0.0, stretch=2.0)
    model.policy.acts.fill_(acts)
    with torch.no_grad():
        model.policy.yes.bias.fill_(start)
    return model


def score(model: HierarchicallyStructuredLSTM, vectors: Tensor, ends: list[bool]) -> Tensor:
    """The policy's score after as many words of a text as ``ends`` has, and one more: a phrase
    ended where it is true."""
    h_phrases, c_phrases = phrases_of(model, vectors, ends)
    begin = max((place + 1 for place, end in enumerate(ends) if end), default=0)
    h = c = torch.zeros(HIDDEN)
    for x in vectors[begin : len(ends) + 1]:
        h, c = lstm_step(model.words, x, h, c)
    seen = torch.cat([c_phrases, h_phrases, c, h]).detach()
    return model.policy.yes.weight[0] @ seen + model.policy.yes.bias[0]


def phrases_of(model: HierarchicallyStructuredLSTM, vectors: Tensor, ends: list[bool]) -> tuple[Tensor, Tensor]:
    """State (h, c) of the upper level after the phrases that have ended: each of them read alone by
    the lower level."""
    h = c = torch.zeros(HIDDEN)
    begin = 0
    for place, end in enumerate(ends):
        if end:
            h, c = lstm_step(model.phrases, lstm(model.words, vectors[begin : place + 1])[-1], h, c)
            begin = place + 1
    return h, c


def likeliest_ends(model: HierarchicallyStructuredLSTM, vectors: Tensor) -> list[bool]:
    ends: list[bool] = []
    while len(ends) < len(vectors) - 1:
        ends.append(score(model, vectors, ends).item() > 0)
    return [*ends, True]


STARTS = {-9.0: [1, 1, 1, 1], 0.0: [2, 2, 1, 1], 0.2: [3, 3, 2, 1], 9.0: LENGTHS}
"""Phrases of each text, by the first bias of the policy."""


@pytest.mark.parametrize("start", STARTS)
def test_words_make_phrases_and_these_the_text(start):
    """In each text alone, in values and gradients: both levels' states are seen by the policy after
    a word, the lower one begins anew behind a phrase, and the last word ends one."""
    model = encoder(start=start)
    words = random_texts(LENGTHS, seed=1, width=WIDTH)
    with collected_choices() as told:
        found = model(words)
    assert_each_alone(found, lambda vectors: phrases_of(model, vectors, likeliest_ends(model, vectors))[0], words)
    rows = [words.vectors[row, :length] for row, length in enumerate(LENGTHS)]
    counts = [sum(likeliest_ends(model, vectors)) for vectors in rows]
    assert counts == STARTS[start]
    shares = torch.tensor([count / length for count, length in zip(counts, LENGTHS, strict=True)])
    torch.testing.assert_close(told["phrases for each word"][0], shares)


def test_until_the_policy_learns_every_third_word_ends_a_phrase():
    """Whatever it would choose."""
    model = encoder(acts=False, start=9.0)
    words = random_texts([7, 3, 2], seed=2, width=WIDTH)
    third = [False, False, True]
    found = model(words)
    for row, ends in enumerate([[*third, *third, True], third, [False, True]]):
        expected = phrases_of(model, words.vectors[row, : len(ends)], ends)[0]
        torch.testing.assert_close(found[row], expected)


def test_it_begins_inclined_to_end_one_phrase_in_three_words():
    policy: Policy = HierarchicallyStructuredLSTM(WIDTH).policy
    assert policy.yes.bias.sigmoid().item() == pytest.approx(1 / 3, abs=0.01)
    assert policy.yes.in_features == 4 * 300


def test_the_price_is_least_for_about_three_phrases_in_ten_words():
    shares = torch.linspace(0.05, 1, 1901)
    prices = HierarchicallyStructuredLSTM.price(shares)
    assert shares[prices.argmin()].item() == pytest.approx(0.1**0.5, abs=1e-3)
    assert HierarchicallyStructuredLSTM.price(torch.tensor([0.2, 1.0])).tolist() == pytest.approx([0.7, 1.1])


def built(texts: list[str] = TEXTS, **settings) -> tuple[DelayedReward, Model, object]:
    settings = {"hidden": HIDDEN, "dropout": 0.0, "draws": 2} | settings
    labels = [0, 1, 1][: len(texts)]
    made = classifier(HierarchicallyStructuredLSTM, view_of(TEXTS), texts, labels, "xyz", WIDTH, **settings)
    assert isinstance(made[0], DelayedReward)
    with torch.no_grad():
        made[1].encoder.policy.yes.weight.mul_(4)
    return made


@pytest.mark.parametrize(
    ("progress", "policy", "classifier"), [(0.1, False, True), (0.3, True, False), (0.9, True, True)]
)
def test_the_policy_learns_after_the_classifier_and_then_beside_it(progress, policy, classifier):
    objective, model, batch = built()
    model.zero_grad()
    found = objective.losses(model, step_of(batch, progress))
    if not policy:
        with model.encoder.policy.choosing(every(3)):
            torch.testing.assert_close(found["loss"], model.loss(batch))
    found["loss"].backward()
    moved = {
        name for name, parameter in model.named_parameters() if parameter.grad is not None and parameter.grad.any()
    }
    own = {name for name, _ in model.named_parameters() if name.startswith("encoder.policy")}
    assert bool(moved & own) == policy and bool(moved - own) == classifier


def test_the_policy_climbs_the_expected_reward(monkeypatch):
    """Through the model, over all divisions of a text of four words, whose last is no choice. The
    mean gradient of a loss of two draws is half of the reward's own, whose other half the mean of
    the two takes off."""
    objective, model, batch = built(["a b c d"], gamma=0.2, rate=0.3)
    own, vectors = model.encoder, model.table.tuned.weight[batch.inputs["text"].ids[0]]
    draws = list(itertools.product([True, False], repeat=3))
    chances, rewards = [], []
    for chosen in draws:
        chance = torch.ones(())
        for place in range(3):
            end = torch.sigmoid(score(own, vectors, list(chosen[:place])))
            chance = chance * (end if chosen[place] else 1 - end)
        h, _ = phrases_of(own, vectors, [*chosen, True])
        share = (sum(chosen) + 1) / 4
        cost = F.cross_entropy(model.head.output(h)[None], batch.target).item()
        chances.append(chance)
        rewards.append(-cost - 3 * 0.2 * (share + 0.1 / share))  # of three classes
    torch.testing.assert_close(sum(chances), torch.ones(()))
    assert min(chances) < 0.7 * max(chances)
    wanted = [own.policy.yes.weight, own.policy.yes.bias]
    exact = torch.autograd.grad(sum(p * r for p, r in zip(chances, rewards, strict=True)), wanted)

    def losses(pair):
        lots = torch.where(torch.tensor([[*each, False] for each in pair]), -1.0, 2.0)
        monkeypatch.setattr(delayed_reward, "drawn", lambda key, draws: lambda ids, mask: lots)
        return objective.losses(model, step_of(batch))["loss"]

    for found, slope in zip(mean_gradients(losses, draws, chances, wanted), exact, strict=True):
        torch.testing.assert_close(found, -0.3 * slope / 2)


def test_dropout_acts_on_the_text_alone():
    """Zeros among the words would stand before the policy too, and before the rewards of a draw."""
    words, other = (random_texts([4, 2], seed=seed, width=WIDTH) for seed in (1, 2))
    model = small(HierarchicallyStructuredLSTM, width=WIDTH, hidden=HIDDEN, dropout=0.5).train()
    seen: list[Tensor] = []
    model.words.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    found = model(words)
    assert torch.equal(torch.stack(seen, 1)[words.mask], words.vectors[words.mask]) and (found == 0).any()
    model.dropout.p = 1.0
    assert not model(other).any()


def test_it_finds_the_phrases_that_tell_the_class():
    """A text has two phrases of three words, and the class is told by the first words of both
    together. With as many phrases that end anywhere the same network tells it much less often."""
    generator = np.random.default_rng(0)
    signs, noise = generator.integers(2, size=(240, 2)), generator.integers(9, size=(240, 2))
    rows = [" ".join(f"{'ab'[s]} n{n} ;" for s, n in zip(*row, strict=True)) for row in zip(signs, noise, strict=True)]
    view, labels = view_of(rows), (signs.sum(1) % 2).tolist()
    settings = {"hidden": 12, "dropout": 0.0, "rate": 1.0}
    objective, model, everything = classifier(HierarchicallyStructuredLSTM, view, rows, labels, "xy", 8, **settings)
    encoded, optimizer, steps = view.encode(rows), torch.optim.Adam(model.parameters(), lr=0.02), 360
    chosen_by = np.random.default_rng(6)
    for step in range(steps):
        chosen = chosen_by.choice(240, 24)
        inputs = {"text": view.collate(encoded, chosen)}
        batch = everything._replace(inputs=inputs, target=everything.target[chosen], rows=chosen)
        optimizer.zero_grad()
        objective.losses(model, step_of(batch, step / steps, passes=1 + step // 10))["loss"].backward()
        optimizer.step()

    def right() -> float:
        return (model(everything.inputs).argmax(1) == everything.target).double().mean().item()

    model.eval()
    with torch.no_grad(), collected_choices() as told:
        learnt = right()
    share = told["phrases for each word"][0].mean().item()
    torch.manual_seed(2)
    free = (6 * share - 1) / 5
    at_random = model.encoder.policy.choosing(lambda ids, mask: torch.where(torch.rand(mask.shape) < free, -1.0, 2.0))
    with torch.no_grad(), collected_choices() as drawn, at_random:
        by_chance = right()
    assert drawn["phrases for each word"][0].mean().item() == pytest.approx(share, abs=0.05)
    assert learnt > 0.95 and by_chance < learnt - 0.1, (learnt, by_chance, share)


@pytest.mark.parametrize(("task", "fits"), [("sst2", True), ("snli", True), ("wikiqa", False)])
def test_what_has_no_class_gives_no_reward(task, fits):
    entry = registry.entry("tasks", task)
    reason = HierarchicallyStructuredLSTM.unfit(entry, registry.entry("architectures", "hs_lstm").hyperparameters)
    assert reason is None if fits else reason.startswith("is rewarded for the class of each text")
