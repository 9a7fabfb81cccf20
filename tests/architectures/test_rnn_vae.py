"""The recurrent variational autoencoder: the bound written out word by word, the weight of the
divergence over a training, and words that are left out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.distributions import Normal, kl_divergence

from architectures.blocks.variational import normal
from architectures.unsupervised.rnn_vae import RecurrentVariationalAutoencoder, SentenceBound, sigmoid_weight
from harness.objectives import collected_losses
from harness.registry import entry
from harness.views.subwords import SubwordBatch
from harness.views.whole_words import WholeWords
from tests.support.models import small
from tests.support.oracles import linear, lstm, lstm_step
from tests.support.plain_text import batch, noise_of
from tests.support.same import assert_same

TEXTS = ["the cat sat on the mat", "a dog ran", "the mat"]
SIZES = {"embedded": 4, "hidden": 5, "latent": 3}


@pytest.fixture(scope="module")
def view() -> WholeWords:
    made = RecurrentVariationalAutoencoder.reads("text", {"vocabulary": 60, "max_length": 12})
    assert isinstance(made, WholeWords) and made.lower, "a word is the same word at the beginning of a sentence"
    made.fit(TEXTS)
    return made


@pytest.fixture
def model(view: WholeWords) -> RecurrentVariationalAutoencoder:
    return small(RecurrentVariationalAutoencoder, view.width, view, stretch=2.0, **SIZES)


@pytest.fixture
def objective(model: RecurrentVariationalAutoencoder) -> SentenceBound:
    return small(SentenceBound, model, stretch=2.0)


def last_state(model: Any, ids: Tensor) -> Tensor:
    """The last state of the reader at one sentence, in loops."""
    return lstm(model.network.recurrence, model.network.table.weight[ids])[-1]


def written(objective: SentenceBound, latent: Tensor, before: Tensor, words: Tensor) -> Tensor:
    """Log-probabilities (n,) of words, each by the latent variable and the words that are read
    before."""
    state, cell = linear(objective.beginning, latent).chunk(2)
    logs = []
    for read, word in zip(before, words, strict=True):
        state, cell = lstm_step(objective.recurrence, objective.table.weight[read], state, cell)
        scores = linear(objective.output, state)
        logs.append(scores[word] - scores.exp().sum().log())
    return torch.stack(logs)


def reference(
    model: Any, objective: SentenceBound, pieces: SubwordBatch, numbers: Tensor
) -> list[tuple[Tensor, Tensor]]:
    """For each sentence the log-probabilities of its words, and the divergence."""
    found = []
    for ids, length, row in zip(pieces.ids, pieces.lengths, numbers, strict=True):
        last = last_state(model, ids[:length])
        mean, deviation = linear(model.network.mean, last), linear(objective.deviation, last).exp()
        logs = written(objective, mean + deviation * row, ids[: length - 1], ids[1:length])
        found.append((logs, kl_divergence(Normal(mean, deviation), Normal(0.0, 1.0)).sum()))
    return found


# --- the posterior and the bound ---


def test_the_vector_is_the_posteriors_mean_by_the_last_state_in_loops(view, model):
    """At the end of each sentence, not of its padding."""
    pieces = batch(view, *TEXTS)
    expected = [
        linear(model.network.mean, last_state(model, ids[:n]))
        for ids, n in zip(pieces.ids, pieces.lengths, strict=True)
    ]
    assert_same(model.vector(pieces), torch.stack(expected))


def test_the_score_of_a_sentence_is_its_bound_in_loops(view, model, objective):
    """One draw, no word left out, the whole divergence."""
    pieces = batch(view, *TEXTS)
    logs, texts = objective(model, pieces, noise_of(pieces))
    expected = reference(model, objective, pieces, normal(noise_of(pieces), 3))
    assert texts.bincount().tolist() == [len(told) for told, _ in expected] == [7, 4, 3]
    assert_same(logs, torch.cat([told - divergence / len(told) for told, divergence in expected]), rtol=1e-4, atol=1e-4)


def test_without_divergence_and_deviation_it_is_an_autoencoder(view, model, objective):
    """A sentence is told by what was read of it, and the deviation is not cut off by a limit."""
    pieces = batch(view, *TEXTS)
    objective.deviation.weight.data.zero_()
    objective.deviation.bias.data.fill_(-30.0)
    objective.train().left_out = 0.0
    with collected_losses() as terms:
        logs, _ = objective(model, pieces, noise_of(pieces, 0, 1, progress=0.0))
    assert sum(terms.values()) < 1e-2 * terms["divergence"]
    means = [model.vector(batch(view, text))[0] for text in TEXTS]
    expected = [
        written(objective, mean, ids[: n - 1], ids[1:n])
        for mean, ids, n in zip(means, pieces.ids, pieces.lengths, strict=True)
    ]
    torch.testing.assert_close(logs, torch.cat(expected), rtol=1e-4, atol=1e-4)


# --- so that the latent variable is not ignored ---


def test_the_weight_of_the_divergence_is_a_sigmoid_of_the_progress():
    """It is nearly 0 at first and nearly 1 for most of the training."""
    assert sigmoid_weight(0.25, 0.25, 0.03) == 0.5
    assert sigmoid_weight(0.31, 0.25, 0.03) == pytest.approx(1 / (1 + np.exp(-2)))
    assert sigmoid_weight(0.19, 0.25, 0.03) == pytest.approx(1 / (1 + np.exp(2)))
    assert sigmoid_weight(0.0, 0.25, 0.03) < 3e-4 and sigmoid_weight(1.0, 0.25, 0.03) > 1 - 1e-6


@pytest.mark.parametrize("progress", [0.0, 0.28])
def test_the_loss_has_the_divergence_by_its_weight_and_the_curve_the_whole(view, model, objective, progress):
    pieces = batch(view, *TEXTS)
    objective.train().left_out = 0.0
    with collected_losses() as terms:
        logs, _ = objective(model, pieces, noise_of(pieces, 1, 2, progress=progress))
    expected = reference(model, objective, pieces, normal(noise_of(pieces, 1, 2), 3))
    nats = sum(divergence for _, divergence in expected) / 14
    assert_same(logs, torch.cat([told for told, _ in expected]), rtol=1e-4, atol=1e-4)
    assert_same(terms["divergence"], nats, rtol=1e-4, atol=1e-4)
    weight = sigmoid_weight(progress, objective.middle, objective.rise)
    assert_same(sum(terms.values()), weight * nats, rtol=1e-4, atol=1e-3)


def test_a_writer_that_reads_no_word_knows_the_sentence_by_the_latent_variable_alone(view, model, objective):
    """With a dropout of 1 the words before do not matter; what is told stays what it was."""
    one, two = batch(view, "the cat sat on the mat"), batch(view, "a dog ran on the mat")
    objective.train().left_out = 1.0
    read = [objective.read(pieces, view.unknown, noise_of(pieces, 0, 1)) for pieces in (one, two)]
    assert torch.equal(*read)
    assert read[0][0].tolist() == [view.start] + [view.unknown] * 6
    assert one.ids[0, 1:-1].tolist() == view.encode(["the cat sat on the mat"])["ids"][0].tolist(), "targets stay"
    latent = torch.randn(1, 3)
    assert torch.equal(*(objective.decoded(latent, ids) for ids in read))


def test_a_share_of_the_words_that_are_read_is_left_out_in_training_alone(view, model):
    """As many as the rate says, other ones in each pass, and never the mark of the beginning."""
    pieces = batch(view, *[f"the cat sat {number}" for number in range(400)])
    pieces = pieces._replace(ids=torch.randint(5, view.width, (400, 12)), mask=torch.ones(400, 12, dtype=torch.bool))
    objective = SentenceBound(model).train()
    before = pieces.ids[:, :-1]
    first, second = (objective.read(pieces, view.unknown, noise_of(pieces, 0, number)) for number in (1, 2))
    out = first != before
    assert out[:, 1:].float().mean().item() == pytest.approx(0.38, abs=0.03) and not out[:, 0].any()
    assert (first[out] == view.unknown).all()
    assert not torch.equal(first, second)
    assert torch.equal(objective.eval().read(pieces, view.unknown, noise_of(pieces)), before)


def test_the_loss_is_that_of_the_words_as_they_stand(view, model, objective):
    """A word that is left out where it is read is told all the same."""
    pieces = batch(view, "the cat sat on the mat")
    objective.train().left_out = 1.0
    logs, _ = objective(model, pieces, noise_of(pieces, 0, 1))
    ids = pieces.ids[0]
    last = last_state(model, ids)
    numbers = normal(noise_of(pieces, 0, 1), 3)[0]
    latent = linear(model.network.mean, last) + linear(objective.deviation, last).exp() * numbers
    blind = torch.tensor([view.start] + [view.unknown] * 6)
    assert_same(logs, written(objective, latent, blind, ids[1:]), rtol=1e-4, atol=1e-4)


# --- features ---


@pytest.mark.parametrize("tuned", [False, True])
def test_a_child_has_the_parents_features_and_leaves_them_unless_it_is_tuned(view, model, tuned):
    child = RecurrentVariationalAutoencoder(view.width, view, tuned=tuned, **SIZES)
    child.inherit("weights", SimpleNamespace(model=SimpleNamespace(encoder=model), view=view), ())
    pieces = batch(view, *TEXTS)
    assert torch.equal(child.vector(pieces), model.vector(pieces))
    assert all(parameter.requires_grad == tuned for parameter in child.parameters())


def test_each_stretch_of_a_text_is_a_sentence_of_its_own():
    """Texts that are put together would share one latent variable."""
    assert not SentenceBound.packs
    assert entry("architectures", "rnn_vae").parents == {"weights": "rnn_vae@text_mix"}
