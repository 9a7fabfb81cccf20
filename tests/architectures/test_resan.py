"""The mechanism of ReSAN: attention between the words that two samplers choose, which the reward of
a whole text teaches."""

from __future__ import annotations

import itertools

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from architectures.attention.disan import DiSAN
from architectures.blocks import delayed_reward
from architectures.blocks.policy import likeliest
from architectures.reinforcement.resan import ReinforcedSelfAttention
from harness import registry
from harness.objectives import collected_choices
from tests.support.acting import classifier, step_of
from tests.support.batches import assert_each_alone, random_texts
from tests.support.models import small
from tests.support.moving_vectors import TEXTS, view_of

WIDTH, HIDDEN = 3, 2


def encoder(acts: bool = True) -> ReinforcedSelfAttention:
    model = small(ReinforcedSelfAttention, width=WIDTH, hidden=HIDDEN, dropout=0.0)
    model.policy.acts.fill_(acts)
    return model


def linear(own: dict[str, Tensor], name: str, x: Tensor) -> Tensor:
    """A linear layer of these parameters, with a bias where it has one."""
    found = own[f"{name}.weight"] @ x
    return found + own[f"{name}.bias"] if f"{name}.bias" in own else found


def chances(own: dict[str, Tensor], vectors: Tensor) -> dict[str, list[Tensor]]:
    """Probabilities that each word of a text (T, width) is a head, and a dependent."""
    vectors = vectors.detach()
    mean = vectors.sum(0) / len(vectors)
    found: dict[str, list[Tensor]] = {"heads": [], "dependents": []}
    for name, chosen in found.items():
        for x in vectors:
            inner = linear(own, f"policy.{name}.1", torch.cat([x, mean, x * mean]))
            score = linear(own, f"policy.{name}.4", torch.where(inner > 0, inner, inner.exp() - 1))[0]
            chosen.append(1 / (1 + torch.exp(-score)))
    return found


def vector(own: dict[str, Tensor], vectors: Tensor, heads: list[bool], dependents: list[bool]) -> Tensor:
    """A text's vector, written out for each word and feature from what is chosen."""
    states = []
    for i in range(len(vectors)):
        state = []
        for side in ("forwards", "backwards"):
            h = [F.elu(linear(own, f"{side}.map", x)) for x in vectors]
            if heads[i]:
                seen = [j for j in range(len(h)) if dependents[j] and (j < i if side == "forwards" else j > i)]
                scores = [
                    5 * torch.tanh((linear(own, f"{side}.key", h[j]) + linear(own, f"{side}.query", h[i])) / 5)
                    for j in seen
                ]
                total = sum((score.exp() for score in scores), vectors.new_zeros(HIDDEN))
                s = sum(
                    (score.exp() / total * h[j] for score, j in zip(scores, seen, strict=True)),
                    vectors.new_zeros(HIDDEN),
                )
            else:
                others = [h[j] for j in range(len(h)) if j != i]
                s = sum(others, vectors.new_zeros(HIDDEN)) / max(1, len(others))
            gate = torch.sigmoid(linear(own, f"{side}.gate_attended", s) + linear(own, f"{side}.gate_token", h[i]))
            state.append(gate * h[i] + (1 - gate) * s)
        states.append(torch.cat(state))
    name = "source2token.scores"
    weights = torch.stack([linear(own, f"{name}.4", F.elu(linear(own, f"{name}.1", u))) for u in states]).softmax(0)
    return (weights * torch.stack(states)).sum(0)


def test_heads_attend_to_dependents_and_other_words_get_the_mean():
    """In each text alone, in values and gradients, by the likelier choices, which differ from word
    to word and between the samplers."""
    model = encoder()
    own = dict(model.named_parameters())
    kinds = set()

    def alone(vectors: Tensor) -> Tensor:
        found = chances(own, vectors)
        heads, dependents = ([p.item() > 0.5 for p in found[name]] for name in ("heads", "dependents"))
        kinds.update(zip(heads, dependents, strict=True))
        return vector(own, vectors, heads, dependents)

    words = random_texts([6, 3, 2, 1, 5], seed=1, width=WIDTH)
    assert_each_alone(model(words), alone, words)
    assert len(kinds) == 4, kinds


def test_all_words_chosen_are_disan():
    """Until the samplers learn, whatever they would choose."""
    model, other = encoder(acts=False), DiSAN(WIDTH, HIDDEN, dropout=0.0).eval()
    other.load_state_dict({k: v for k, v in model.state_dict().items() if not k.startswith("policy")})
    words = random_texts([5, 2, 1], seed=2, width=WIDTH)
    with collected_choices() as told:
        found = model(words)
    torch.testing.assert_close(found, other.pooled(other(words.vectors, words.mask), words.mask))
    assert told["share of pairs chosen"][0].tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("none", ["heads", "dependents"])
def test_a_text_of_which_nothing_is_chosen_has_a_vector(none):
    model = encoder()
    own = dict(model.named_parameters())
    with torch.no_grad():
        model.policy.heads[4].bias.fill_(1e3)
        model.policy.dependents[4].bias.fill_(1e3)
        getattr(model.policy, none)[4].bias.fill_(-1e3)
    words = random_texts([4, 1], seed=3, width=WIDTH)
    with model.policy.choosing(likeliest) as told:
        found = model(words)
    yes = {"heads": True, "dependents": True} | {none: False}
    for row, length in enumerate([4, 1]):
        chosen = [[yes[name]] * length for name in ("heads", "dependents")]
        torch.testing.assert_close(found[row], vector(own, words.vectors[row, :length], *chosen))
    assert not told[0].share.any()
    found.sum().backward()
    assert all(bool(p.grad.isfinite().all()) for p in model.parameters() if p.grad is not None)


def test_the_samplers_climb_the_expected_reward(monkeypatch):
    """Over all 2^6 choices for three words: the mean gradient of a loss of two draws is half of the
    reward's own, whose other half the mean of the two takes off. The price does not grow with the
    number of classes, and rewards teach nothing but the samplers."""
    settings = {"hidden": HIDDEN, "dropout": 0.0, "draws": 2, "gamma": 0.4, "rate": 0.3}
    objective, model, batch = classifier(
        ReinforcedSelfAttention, view_of(TEXTS), ["a c d"], [0], "xyz", WIDTH, **settings
    )
    model.double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)
    own = dict(model.encoder.named_parameters())
    vectors = model.table.tuned.weight[batch.inputs["text"].ids[0]].detach()
    yes = chances(own, vectors)
    draws = list(itertools.product([True, False], repeat=6))  # the lots of a word stand side by side
    chance, rewards = [], []
    for draw in draws:
        heads, dependents = list(draw[::2]), list(draw[1::2])
        probability = torch.ones((), dtype=torch.double)
        for name, chosen in (("heads", heads), ("dependents", dependents)):
            for p, one in zip(yes[name], chosen, strict=True):
                probability = probability * (p if one else 1 - p)
        scores = model.head.output.weight @ vector(own, vectors, heads, dependents) + model.head.output.bias
        chance.append(probability)
        rewards.append(scores.log_softmax(0)[0].item() - 0.4 * sum(heads) / 3 * sum(dependents) / 3)
    torch.testing.assert_close(sum(chance), torch.ones((), dtype=torch.double))
    wanted = list(model.encoder.policy.parameters())
    expected = torch.autograd.grad(sum(p * r for p, r in zip(chance, rewards, strict=True)), wanted)
    lots = torch.where(torch.tensor(draws), -1.0, 2.0)
    rows = torch.cartesian_prod(torch.arange(64), torch.arange(64))
    # All pairs of draws are one batch of a text that stands there 4,096 times.
    monkeypatch.setattr(delayed_reward, "drawn", lambda key, times: lambda ids, mask: lots[rows.T.flatten()])
    many = {k: type(v)(*(f.repeat_interleave(4096, 0) if f.numel() else f for f in v)) for k, v in batch.inputs.items()}
    weights = torch.stack(chance).detach()
    pairs = weights[rows].prod(1)
    told = []
    monkeypatch.setattr(
        delayed_reward,
        "reinforced",
        lambda logs, gains: told.append((logs, gains)) or -((gains - gains.mean(0)).detach() * logs * pairs).sum() / 2,
    )
    big = batch._replace(inputs=many, target=batch.target.repeat(4096))
    found = objective.losses(model, step_of(big, 0.3))["loss"]
    torch.testing.assert_close(told[0][1][0, ::64], torch.tensor(rewards, dtype=torch.double))
    torch.testing.assert_close(told[0][0][0, ::64], torch.stack(chance).log())
    found.backward()
    for parameter, slope in zip(wanted, expected, strict=True):
        assert slope.any()
        torch.testing.assert_close(parameter.grad, -0.3 * slope / 2)
    for name, parameter in model.named_parameters():
        assert "policy" in name or parameter.grad is None or not parameter.grad.to_dense().any(), name


@pytest.mark.parametrize(("task", "fits"), [("sst2", True), ("snli", True), ("wikiqa", False)])
def test_what_has_no_class_gives_no_reward(task, fits):
    entry = registry.entry("tasks", task)
    reason = ReinforcedSelfAttention.unfit(entry, registry.entry("architectures", "resan").hyperparameters)
    assert reason is None if fits else reason.startswith("is rewarded for the class of each text")
