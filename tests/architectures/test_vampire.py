"""VAMPIRE: topics, background and batch norm written out, the weight of the divergence, and a
classifier beside states that stay as they were learnt."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.distributions import Normal, kl_divergence

from architectures.blocks.variational import normal
from architectures.blocks.word_bags import ContentWords
from architectures.unsupervised.vampire import EPSILON, TopicBound, Vampire
from harness.objectives import collected_losses
from harness.registry import entry
from tests.support.known_dropout import Uneven, as_is, uneven
from tests.support.models import small
from tests.support.oracles import linear
from tests.support.plain_text import batch, noise_of
from tests.support.same import assert_same

TEXTS = ["cat saw cat", "dog cat bird", "bird sang", "saw"]
SIZES = {"layers": 2, "latent": 4, "vae_dropout": 0.0, "embedded": 3}


@pytest.fixture(scope="module")
def view() -> ContentWords:
    made = ContentWords(size=40, max_length=12)
    made.fit(TEXTS)
    return made


@pytest.fixture
def model(view: ContentWords) -> Vampire:
    return small(Vampire, view.width, view, **SIZES)


@pytest.fixture
def objective(model: Vampire) -> TopicBound:
    made = small(TopicBound, model)
    made.norm.running_mean.normal_()
    made.norm.running_var.uniform_(0.5, 2.0)
    made.deviation.weight.data.normal_(std=0.3)
    return made


def bag(view: ContentWords, text: str) -> Tensor:
    counts = torch.zeros(view.width)
    for word in text.split():
        counts[view.words[word]] += 1
    return counts


def read(model: Vampire, counts: Tensor) -> tuple[list[Tensor], Tensor]:
    """Both layers and the mean of one bag."""
    states = [counts]
    for layer in model.network.layers:
        states.append(linear(layer, states[-1]))
    return states[1:], linear(model.network.mean, states[-1])


def shares(scores: Tensor) -> Tensor:
    return scores.exp() / scores.exp().sum()


def scores_of(objective: TopicBound, view: ContentWords, latents: list[Tensor], moments: Any = None) -> Tensor:
    """Scores (B, V) of all words: the batch norm of theta B + b by these moments, or those of the
    batch."""
    counts = torch.ones(view.width)
    for text in TEXTS:
        counts += bag(view, text)
    background = (counts / counts.sum()).log()
    raw = torch.stack([objective.topics.weight @ shares(latent) + background for latent in latents])
    mean, variance = moments or (raw.mean(0), (raw - raw.mean(0)).square().mean(0))
    return (raw - mean) / (variance + EPSILON).sqrt() + objective.shift


def reference(
    model: Vampire, objective: TopicBound, view: ContentWords, numbers: Tensor, moments: Any = None
) -> list[tuple[Tensor, Tensor]]:
    """For each text the log-probabilities of its words, and the divergence."""
    latents, divergences = [], []
    for text, row in zip(TEXTS, numbers, strict=True):
        states, mean = read(model, bag(view, text))
        deviation = linear(objective.deviation, states[-1]).exp()
        latents.append(mean + deviation * row)
        divergences.append(kl_divergence(Normal(mean, deviation), Normal(0.0, 1.0)).sum())
    scores = scores_of(objective, view, latents, moments)
    logs = [torch.stack([shares(row)[view.words[word]].log() for word in text.split()])
            for row, text in zip(scores, TEXTS, strict=True)]  # fmt: skip
    return list(zip(logs, divergences, strict=True))


# --- the bound ---


def test_the_score_of_a_text_is_its_bound_written_out(view, model, objective):
    """By running moments, theta and the background; the whole divergence."""
    pieces = batch(view, *TEXTS)
    logs, _ = objective(model, pieces, noise_of(pieces))
    moments = objective.norm.running_mean, objective.norm.running_var
    expected = reference(model, objective, view, normal(noise_of(pieces), 4), moments)
    told = torch.cat([told - divergence / len(told) for told, divergence in expected])
    assert_same(logs, told, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("progress", "weight"), [(0.0, 0.0), (0.25, 0.5), (0.5, 1.0), (0.9, 1.0)])
def test_the_loss_has_the_moments_of_the_batch_and_a_weight_that_rises(view, model, objective, progress, weight):
    """The curve has the whole divergence, however small its weight."""
    pieces = batch(view, *TEXTS)
    with collected_losses() as terms:
        logs, _ = objective.train()(model, pieces, noise_of(pieces, 1, 2, progress=progress))
    expected = reference(model, objective, view, normal(noise_of(pieces, 1, 2), 4))
    nats = sum(divergence for _, divergence in expected) / 9
    assert_same(logs, torch.cat([told for told, _ in expected]), rtol=1e-3, atol=1e-3)
    assert_same(terms["divergence"], nats, rtol=1e-4, atol=1e-4)
    assert sum(terms.values()).item() == pytest.approx(weight * nats.item(), rel=1e-4, abs=1e-4)


def test_the_background_alone_is_the_share_of_each_word(view, model):
    """Topics have to say only what makes a text differ; the shares stay as they are."""
    objective = TopicBound(model).eval()
    objective.topics.weight.data.zero_()
    scores = objective.decoded(torch.randn(2, 4)) * (1 + EPSILON) ** 0.5
    torch.testing.assert_close(scores.softmax(1), view.log_shares().exp().expand(2, -1))
    assert "background" in dict(objective.named_buffers()) and "background" not in dict(objective.named_parameters())


def test_no_scale_is_trained_behind_the_norm(model):
    """With one the norm would not keep topics from standing all in a few words."""
    names = {name for name, _ in TopicBound(model).named_parameters()}
    assert names == {"deviation.weight", "deviation.bias", "topics.weight", "shift"}


def test_running_moments_follow_slowly(view, model, objective):
    """A thousandth of the way in each step, as in the authors' code."""
    before = objective.norm.running_mean.clone()
    latents = torch.randn(4, 4)
    raw = torch.stack([objective.topics.weight @ shares(row) for row in latents]) + view.log_shares()
    objective.train().decoded(latents)
    torch.testing.assert_close(objective.norm.running_mean, 0.999 * before + 0.001 * raw.mean(0))


def test_a_batch_of_one_text_is_normed_as_in_evaluation(objective):
    """It has no deviation, and its loss would be no number."""
    latent = torch.randn(1, 4)
    assert_same(objective.train().decoded(latent), objective.eval().decoded(latent))


def test_dropout_acts_on_the_latent_variable_before_the_softmax(view, model):
    """Shares of topics still sum to 1; what is dropped has the share of a zero."""
    dropped = Vampire(view.width, view, **SIZES | {"vae_dropout": 0.5})
    objective = TopicBound(dropped).train()
    seen: list[Tensor] = []
    objective.topics.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    latent = torch.tensor([1.0, 2.0, 3.0, 4.0]).expand(500, 4)
    objective.decoded(latent)
    torch.testing.assert_close(seen[0].sum(1), torch.ones(500))
    kept = (seen[0].log() - seen[0].log().amin(1, keepdim=True)) > 0.1
    assert 0.3 < kept.float().mean() < 0.6
    assert len({tuple(row) for row in kept.tolist()}) > 8


# --- the classifier ---


def features(
    model: Vampire, view: ContentWords, text: str, dropped: Callable[[Tensor], Tensor], weights: Tensor
) -> Tensor:
    """The vector of a text, written out, with these weights of layers and theta."""
    states, mean = read(model, bag(view, text))
    learnt = model.mix.scale * sum(w * s for w, s in zip(weights, [*states, shares(mean)], strict=True))
    words = torch.stack([model.words.weight[view.words[word]] for word in text.split()]).mean(0)
    return dropped(torch.cat([words, dropped(learnt)]))


@pytest.mark.parametrize("dropped", [as_is, uneven])
def test_the_vector_joins_mean_word_vectors_and_mixed_states(view, model, dropped):
    """Layers and theta by their trained weights, beside the words of a text, not their set; dropout
    acts on the mix, and on all once more."""
    if dropped is uneven:
        model.mix_dropout = model.dropout = Uneven()
    pieces = batch(view, *TEXTS)
    weights = shares(model.mix.weights)
    expected = torch.stack([features(model, view, text, dropped, weights) for text in TEXTS])
    assert_same(model.vector(pieces), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("layers", "weights"), [(1, [0.5, 0.5]), (2, [0.5, 0, 0.5]), (3, [0.5, 0, 0, 0.5])])
def test_the_mix_begins_as_half_the_first_layer_and_half_theta(view, layers, weights):
    """As in the authors' code: layers above the first have next to no share, and no gradient that
    would give them one soon."""
    model = small(Vampire, view.width, view, stretch=None, **SIZES | {"layers": layers})
    expected = [features(model, view, text, as_is, torch.tensor(weights)) for text in TEXTS]
    torch.testing.assert_close(model.vector(batch(view, *TEXTS)), torch.stack(expected), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("tuned", [False, True])
def test_states_stay_as_they_were_learnt_and_the_classifier_learns(view, model, tuned):
    child = Vampire(view.width, view, tuned=tuned, **SIZES)
    child.inherit("weights", SimpleNamespace(model=SimpleNamespace(encoder=model), view=view), ())
    trained = {name for name, parameter in child.named_parameters() if parameter.requires_grad}
    assert {"mix.weights", "mix.scale", "words.weight"} <= trained
    assert any(name.startswith("network.") for name in trained) == tuned
    assert all(torch.equal(value, model.state_dict()[name]) for name, value in child.state_dict().items())


def test_word_vectors_begin_glorot_uniform(view):
    """So small beside states that are not scaled: with a table of 30,000 words within 0.014."""
    weights = Vampire(view.width, view, **SIZES | {"embedded": 400}).words.weight
    bound = (6 / (view.width + 400)) ** 0.5
    assert weights.abs().max() <= bound and weights.std().item() == pytest.approx(bound / 3**0.5, rel=0.05)


def test_it_starts_from_what_it_learnt_on_the_text_mix():
    assert entry("architectures", "vampire").parents == {"weights": "vampire@text_mix"}
