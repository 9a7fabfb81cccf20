"""The mechanism of ID-LSTM: deleted words leave the state as it was, and the reward of a whole text
teaches what to delete."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from architectures.blocks import delayed_reward
from architectures.blocks.delayed_reward import DelayedReward
from architectures.blocks.policy import every, likeliest
from architectures.reinforcement.id_lstm import InformationDistilledLSTM
from harness import registry
from harness.objectives import Step, collected_choices
from harness.problems import problem
from harness.problems.base import Batch
from harness.problems.classify import ClassTarget
from harness.registry import Recipe
from harness.training.model import Model, build, objective_of
from tests.support.acting import batch_of, classifier, mean_gradients, step_of
from tests.support.batches import assert_each_alone, random_texts
from tests.support.models import small
from tests.support.moving_vectors import TEXTS, view_of
from tests.support.oracles import lstm_step

HIDDEN, WIDTH = 3, 4


def encoder(acts: bool = True) -> InformationDistilledLSTM:
    model = small(InformationDistilledLSTM, width=WIDTH, hidden=HIDDEN, dropout=0.0).eval()
    model.policy.acts.fill_(acts)
    return model


def state_after(model: InformationDistilledLSTM, vectors: Tensor, kept: list[bool]) -> tuple[Tensor, Tensor]:
    """State (h, c) after those words of a text (T, width) that are kept, written out."""
    h = c = vectors.new_zeros(HIDDEN)
    for x, keep in zip(vectors, kept, strict=True):
        if keep:
            h, c = lstm_step(model.cell, x, h, c)
    return h, c


def read_alone(model: InformationDistilledLSTM, vectors: Tensor) -> Tensor:
    """The vector of one text (T, width), by the likeliest choices."""
    kept: list[bool] = []
    for x in vectors:
        h, c = state_after(model, vectors[: len(kept)], kept)
        score = model.policy.yes.weight[0] @ torch.cat([c, h, x]) + model.policy.yes.bias[0]
        kept.append(score.item() > 0)
    if not any(kept):
        kept[max(0, len(kept) - 2)] = True
    return state_after(model, vectors, kept)[0]


@pytest.mark.parametrize("start", [-0.5, 0.0, 0.5])
def test_the_state_passes_over_deleted_words(start):
    """In each text alone, in values and gradients: the policy sees [c; h; x] as they are before the
    word, and a text with nothing left is its last word but one."""
    model = encoder()
    with torch.no_grad():
        model.policy.yes.bias.fill_(start)
    words = random_texts([5, 3, 2, 1], seed=1, width=WIDTH)
    assert_each_alone(model(words), lambda vectors: read_alone(model, vectors), words)


def test_until_the_policy_learns_it_is_an_lstm():
    """Whatever it would choose."""
    model = encoder(acts=False)
    with torch.no_grad():
        model.policy.yes.bias.fill_(-5)
    words = random_texts([4, 2], seed=2, width=WIDTH)
    lstm = torch.nn.LSTM(WIDTH, HIDDEN, batch_first=True)
    lstm.load_state_dict({f"{name}_l0": value for name, value in model.cell.state_dict().items()})
    with collected_choices() as told:
        found = model(words)
    for row, length in enumerate([4, 2]):
        torch.testing.assert_close(found[row], lstm(words.vectors[row : row + 1, :length])[0][0, -1])
    assert told["share of words read"][0].tolist() == [1.0, 1.0]


@pytest.mark.parametrize(("lengths", "place"), [([4, 2, 1], [2, 0, 0])])
def test_a_text_without_words_is_its_last_word_but_one(lengths, place):
    model = encoder()
    with torch.no_grad():
        model.policy.yes.bias.fill_(-1e3)
    words = random_texts(lengths, seed=3, width=WIDTH)
    with model.policy.choosing(likeliest) as told:
        found = model(words)
    expected = [state_after(model, words.vectors[row, [at]], [True])[0] for row, at in enumerate(place)]
    torch.testing.assert_close(found, torch.stack(expected))
    torch.testing.assert_close(told[0].share, 1 / words.lengths)  # it is read, and has its price


def built(texts: list[str] = TEXTS, **settings) -> tuple[DelayedReward, Model, Batch]:
    settings = {"hidden": HIDDEN, "dropout": 0.0, "draws": 4} | settings
    labels = [0, 1, 1][: len(texts)]
    objective, model, batch = classifier(
        InformationDistilledLSTM, view_of(TEXTS), texts, labels, "xyz", WIDTH, **settings
    )
    with torch.no_grad():
        model.encoder.policy.yes.bias.fill_(0.3)
    assert isinstance(objective, DelayedReward)
    return objective, model, batch


def test_the_classifier_learns_first_alone_and_from_whole_texts():
    objective, model, batch = built()
    with torch.no_grad():
        model.encoder.policy.yes.bias.fill_(-5)  # by the likeliest choices no word would be read
    model.encoder.policy.acts.fill_(True)  # as before another training
    found = objective.losses(model, step_of(batch, 0.16))
    with model.encoder.policy.choosing(every(1)):
        torch.testing.assert_close(found["loss"], model.loss(batch))
    found["loss"].backward()
    assert model.encoder.policy.yes.weight.grad is None
    assert not model.encoder.policy.acts
    objective.losses(model, step_of(batch, 0.17))
    assert model.encoder.policy.acts
    assert objective.last_phase == 5 / 12


@pytest.mark.parametrize(("progress", "both"), [(1 / 6, False), (0.41, False), (5 / 12, True), (1.0, True)])
def test_then_the_policy_learns_by_rewards_and_at_last_both(progress, both):
    """Written out from what was drawn: cross-entropy and share of each draw, each text's mean taken
    off, the logarithms of its choices. In the second phase the classifier stays as it is."""
    objective, model, batch = built(gamma=0.2, rate=0.3)
    drawn = []
    own = model.encoder.policy.tell
    model.encoder.policy.tell = lambda *given: (drawn.append(given), own(*given))[1]
    found = objective.losses(model, step_of(batch, progress))
    [(logs, yes, free, mask)] = drawn
    assert torch.equal(free, mask)
    vectors = model.table.tuned.weight[batch.inputs["text"].ids]
    costs, policy, shares = [], 0.0, []
    for text, label in enumerate(batch.target.tolist()):
        length = int(mask[text].sum())
        rows, rewards = [text + 3 * draw for draw in range(4)], []
        for row in rows:
            kept = yes[row, :length].tolist()
            state, _ = state_after(model.encoder, vectors[text, :length], kept if any(kept) else one(length))
            scores = model.head.output.weight @ state + model.head.output.bias
            costs.append(F.cross_entropy(scores[None], torch.tensor([label])))
            shares.append(sum(kept) / length)
            rewards.append(-costs[-1].item() + 3 * 0.2 * (1 - shares[-1]))  # of three classes
        for row, reward in zip(rows, rewards, strict=True):
            policy = policy - (reward - sum(rewards) / 4) * logs[row, :length].sum() / 12
    torch.testing.assert_close(found["policy"], 0.3 * policy)
    torch.testing.assert_close(found["task"], sum(costs) / 12)
    torch.testing.assert_close(found["chosen"], torch.tensor(shares).mean())
    expected = 0.3 * policy + (sum(costs) / 12 if both else 0)
    torch.testing.assert_close(found["loss"], expected)
    parameters = dict(model.named_parameters())
    wanted = torch.autograd.grad(expected, list(parameters.values()), allow_unused=True, retain_graph=True)
    gradients = torch.autograd.grad(found["loss"], list(parameters.values()), allow_unused=True)
    for name, one_, other in zip(parameters, gradients, wanted, strict=True):
        moves = name.startswith("encoder.policy") or both
        assert (one_ is not None and bool(one_.any())) == moves, name
        if moves:
            rows = slice(1, None) if name.startswith("table") else slice(None)  # padding is trained by nothing
            torch.testing.assert_close(one_[rows], other[rows])


def one(length: int) -> list[bool]:
    """The last word but one alone."""
    return [place == max(0, length - 2) for place in range(length)]


def test_a_text_of_a_pair_is_drawn_as_the_other_is(monkeypatch):
    """Both count: the logarithms are summed, and the share and its price are the means of two."""
    torch.manual_seed(0)
    view, target = view_of(TEXTS), ClassTarget()
    target.fit([{"label": label} for label in "xy"])
    settings = {"hidden": HIDDEN, "dropout": 0.0, "draws": 2, "gamma": 0.5, "rate": 1.0}
    model = build(InformationDistilledLSTM, problem("match"), settings, view, target, WIDTH)
    told = []
    own = model.encoder.policy.tell
    model.encoder.policy.tell = lambda logs, yes, free, mask: (
        told.append((logs * mask, yes & mask)),
        own(logs, yes, free, mask),
    )[1]
    encoded = view.encode(TEXTS)
    inputs = {"first": view.collate(encoded, np.arange(3)), "second": view.collate(encoded, np.arange(3)[::-1].copy())}
    batch = Batch(inputs, torch.tensor([0, 1, 1]), np.arange(3), 20)
    found = objective_of(model, Recipe()).losses(model, Step({"labelled": batch}, progress=0.9))
    assert len(told) == 2
    lengths = torch.tensor([5.0, 2.0, 3.0]).repeat(2)
    shares = (told[0][1].sum(1) / lengths + told[1][1].sum(1) / torch.tensor([3.0, 2.0, 5.0]).repeat(2)) / 2
    torch.testing.assert_close(found["chosen"], shares.mean())
    (gradient,) = torch.autograd.grad(found["policy"], model.encoder.policy.yes.bias)
    assert gradient.any()
    rewards: list[Tensor] = []
    monkeypatch.setattr(delayed_reward, "reinforced", lambda logs, gains: rewards.append(gains) or gains.mean())
    for gamma in (0.5, 0.0):
        model.encoder.gamma = gamma
        objective_of(model, Recipe()).losses(model, Step({"labelled": batch}, progress=0.9))
    torch.testing.assert_close(rewards[1] - rewards[0], 0.5 * 2 * shares.view(2, 3))


def test_the_policy_climbs_the_expected_reward(monkeypatch):
    """Through the model, over all draws of three choices: the mean gradient of a loss of two draws
    is half of the reward's own, whose other half the mean of the two takes off."""
    objective, model, batch = built(["a c d"], draws=2, gamma=0.2, rate=0.3)
    policy, vectors = model.encoder.policy, model.table.tuned.weight[batch.inputs["text"].ids[0]]
    draws = list(itertools.product([True, False], repeat=3))
    chances, rewards = [], []
    for kept in draws:
        chance = torch.ones(())
        for place, x in enumerate(vectors):
            h, c = state_after(model.encoder, vectors[:place], list(kept[:place]))
            yes = torch.sigmoid(policy.yes.weight[0] @ torch.cat([c, h, x]).detach() + policy.yes.bias[0])
            chance = chance * (yes if kept[place] else 1 - yes)
        state, _ = state_after(model.encoder, vectors, list(kept) if any(kept) else one(3))
        scores = model.head.output.weight @ state + model.head.output.bias
        chances.append(chance)
        rewards.append(scores.log_softmax(0)[0].item() - 3 * 0.2 * max(1, sum(kept)) / 3)
    torch.testing.assert_close(sum(chances), torch.ones(()))
    wanted = [policy.yes.weight, policy.yes.bias]
    exact = torch.autograd.grad(sum(p * r for p, r in zip(chances, rewards, strict=True)), wanted)

    def losses(pair):
        lots = torch.where(torch.tensor(pair), -1.0, 2.0)
        monkeypatch.setattr(delayed_reward, "drawn", lambda key, draws: lambda ids, mask: lots)
        return objective.losses(model, step_of(batch))["loss"]

    for found, slope in zip(mean_gradients(losses, draws, chances, wanted), exact, strict=True):
        torch.testing.assert_close(found, -0.3 * slope / 2)


def test_a_text_is_drawn_as_it_is_alone_and_otherwise_in_the_next_pass():
    """On several devices a batch is cut, and an epoch that is resumed draws what it would have."""
    objective, model, batch = built()
    view = view_of(TEXTS)
    together = objective.losses(model, step_of(batch, seed=3, passes=2))["policy"]
    alone = [
        objective.losses(model, step_of(batch_of(view, [text], [label]), seed=3, passes=2))["policy"]
        for text, label in zip(TEXTS, [0, 1, 1], strict=True)
    ]
    torch.testing.assert_close(sum(alone) / 3, together)
    for further in ({"seed": 3, "passes": 1}, {"seed": 2, "passes": 2}):
        assert objective.losses(model, step_of(batch, **further))["policy"] != together


def test_it_learns_to_drop_what_tells_nothing():
    """One word in five says the class. With a price on each word that is read, most others are
    deleted, and the class is still told; by as many words at random it is not."""
    generator = np.random.default_rng(0)
    noise = [f"n{number}" for number in range(20)]
    rows = []
    for number in range(240):
        words = list(generator.choice(noise, 5))
        words[generator.integers(5)] = ("good", "bad")[number % 2]
        rows.append(" ".join(words))
    view, target = view_of(rows), ClassTarget()
    target.fit([{"label": "x"}, {"label": "y"}])
    torch.manual_seed(1)
    settings = {"hidden": 8, "dropout": 0.0, "draws": 5, "gamma": 0.3, "rate": 1.0}
    model = build(InformationDistilledLSTM, problem("classify"), settings, view, target, 8)
    objective, optimizer = objective_of(model, Recipe()), torch.optim.Adam(model.parameters(), lr=0.03)
    encoded, steps = view.encode(rows), 150
    for step in range(steps):
        chosen = generator.choice(240, 24)
        batch = Batch({"text": view.collate(encoded, chosen)}, torch.tensor(chosen % 2), chosen, 120)
        optimizer.zero_grad()
        objective.losses(model, step_of(batch, step / steps, passes=1 + step // 10))["loss"].backward()
        optimizer.step()
    inputs, classes = {"text": view.collate(encoded, np.arange(240))}, torch.arange(240) % 2

    def right() -> float:
        return (model(inputs).argmax(1) == classes).double().mean().item()

    model.eval()
    with torch.no_grad(), collected_choices() as told:
        learnt = right()
    share = told["share of words read"][0].mean().item()
    torch.manual_seed(2)
    with (
        torch.no_grad(),
        model.encoder.policy.choosing(
            lambda ids, mask: torch.where(torch.rand(mask.shape) < share, -1.0, 2.0)
        ) as at_random,
    ):
        by_chance = right()
    assert at_random[0].share.mean().item() > share - 0.05  # more: of a text without words one is read
    assert learnt > 0.95 and share < 0.6 and by_chance < learnt - 0.15, (learnt, share, by_chance)


@pytest.mark.parametrize(("task", "fits"), [("sst2", True), ("snli", True), ("wikiqa", False)])
def test_what_has_no_class_gives_no_reward(task, fits):
    entry = registry.entry("tasks", task)
    reason = InformationDistilledLSTM.unfit(entry, registry.entry("architectures", "id_lstm").hyperparameters)
    assert reason is None if fits else reason.startswith("is rewarded for the class of each text")
