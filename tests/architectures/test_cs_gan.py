"""The mechanism of CS-GAN: texts that a generator makes of each category, three players with a loss
each, and rewards that teach the generator without a gradient of their own."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from torch import Tensor

from architectures.reinforcement.cs_gan import (
    CategorySentenceGAN,
    CategoryTexts,
    TextDiscriminator,
    TextGenerator,
)
from harness import registry
from harness.objectives import Step, Supervised
from harness.problems.base import Batch
from harness.registry import Recipe
from harness.training.fit import fit
from harness.training.fit_module import FitModule
from harness.training.model import Model, objective_of
from tests.support.models import small
from tests.support.moving_vectors import TEXTS, Summed, prepared, view_of
from tests.support.oracles import convolution, linear, lstm
from tests.support.same import assert_same
from tests.support.toy_corpus import toy_corpus, toy_model

SIZES = {"size": 3, "hidden": 4, "maps": 2, "longest": 4}
EARLY, LATE = 0.49, 0.5


class Split:
    """Encoded rows, as an objective is told them."""

    def __init__(self):
        self.view = view_of(TEXTS)


class Penalised(Summed):
    """An encoder with a penalty of its own."""

    def forward(self, words):
        self.add_loss("penalty", words.vectors.sum() * 0 + 0.25)
        return super().forward(words)


def begun(encoder: type = Summed, **settings: float) -> tuple[CategoryTexts, Model, Batch]:
    """An objective that has begun, whose players all have weights far from uniform, a model whose
    answers differ, and a labelled batch: texts of 5, 2 and 3 words of the classes 0, 1 and 1."""
    regime = CategorySentenceGAN(**(SIZES | settings))
    model, labelled, _ = prepared(regime, encoder=encoder)
    made = objective_of(model, Recipe(), regime)
    with torch.no_grad():
        model.table.tuned.weight.mul_(6)
        for parameter in made.parameters():
            parameter.mul_(2)
    made.begin({"labelled": Split()})
    return made, model, labelled


def generator_of(words: int = 4, longest: int = 3) -> TextGenerator:
    """A generator of few words, of which no two categories are alike."""
    return small(TextGenerator, words, 2, 3, 4, longest, stretch=4.0)


# --- what is written twice ---


def shares(generator: TextGenerator, before: list[int], category: int) -> Tensor:
    """Probability of each word, or of the end, behind the words ``before``."""
    vectors = [
        torch.cat([generator.words.weight[word], generator.categories.weight[category]]) for word in [0, *before]
    ]
    scores = linear(generator.output, lstm(generator.recurrence, vectors)[-1]).exp()
    if not before:
        scores = torch.cat([torch.zeros(1), scores[1:]])
    return scores / scores.sum()


def log_of(generator: TextGenerator, text: list[int], category: int) -> Tensor:
    """Logarithm of the probability of a text, word by word."""
    text = text[: generator.longest]
    following = text if len(text) == generator.longest else [*text, 0]
    return sum(shares(generator, text[:n], category)[word].log() for n, word in enumerate(following))


def drawn_by(generator: TextGenerator, category: int, lots: list[float]) -> list[int]:
    """The text that lots draw, number after number."""
    text: list[int] = []
    for lot in lots:
        word, upto = -1, 0.0
        while upto <= lot:
            word += 1
            upto += shares(generator, text, category)[word].item()
        if word == 0:
            break
        text.append(word)
    return text


def judgement(discriminator: TextDiscriminator, text: list[int]) -> Tensor:
    """The score of a text."""
    vectors, features = [discriminator.words.weight[word] for word in text], []
    for layer in discriminator.convolution.convolutions:
        missing = max(0, layer.kernel_size[0] - len(text))
        windows = convolution(layer, vectors, right=missing)
        features.append(torch.stack([torch.relu(window) for window in windows]).amax(0))
    return linear(discriminator.output, torch.cat(features))[0]


def answer(model: Model, text: list[int], length: int) -> Tensor:
    """Logarithms of the probabilities of the classes of a text in a batch of this length, by the
    parameters alone: ``Summed`` also reads the zeros behind it."""
    own = dict(model.named_parameters())
    vectors = own["table.tuned.weight"][torch.tensor(text + [0] * (length - len(text)))]
    state = torch.tanh(vectors @ own["encoder.hidden.weight"].T + own["encoder.hidden.bias"]).sum(0)
    scores = own["head.output.weight"] @ state + own["head.output.bias"]
    return scores - scores.exp().sum().log()


def padded(texts: list[list[int]], length: int | None = None) -> Tensor:
    """Texts (B, T) with 0 behind them."""
    length = length or max(map(len, texts))
    return torch.tensor([text + [0] * (length - len(text)) for text in texts])


def all_texts(generator: TextGenerator) -> list[list[int]]:
    """Every text that a generator can make."""
    words, longest = len(generator.words.weight), generator.longest
    return [list(text) for n in range(1, longest + 1) for text in itertools.product(range(1, words), repeat=n)]


# --- the generator ---


def test_the_probability_of_a_text_is_the_product_of_its_words_and_of_its_end():
    """With the end left out a generator would learn no length; one text is as long as may be, and
    one longer, which is cut."""
    generator = generator_of(words=5, longest=4)
    texts = [[1], [2, 3], [4, 4, 1], [1, 2, 3, 4], [1, 2, 3, 4, 2], [3, 3]]
    categories = [0, 1, 1, 0, 1, 0]
    found = generator.logs(padded(texts), torch.tensor(categories))
    expected = torch.stack([log_of(generator, text, c) for text, c in zip(texts, categories, strict=True)])
    torch.testing.assert_close(found, expected)
    own = list(generator.parameters())
    for one, other in zip(
        torch.autograd.grad(found.square().sum(), own),
        torch.autograd.grad(expected.square().sum(), own),
        strict=True,
    ):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def test_the_probabilities_of_all_texts_sum_to_one():
    """No text is empty, which would be a batch's text without any word to read."""
    generator = generator_of()
    texts = padded(all_texts(generator))
    for category in (0, 1):
        logs = generator.logs(texts, torch.full((len(texts),), category))
        assert logs.exp().sum().item() == pytest.approx(1, abs=1e-5)


def test_the_same_lots_draw_other_texts_of_another_category():
    """Else a text's category would be a word without meaning: the divergence between the two
    distributions over all texts, which is nothing where the categories have the same vector."""
    generator = generator_of()
    texts = padded(all_texts(generator))
    first, second = (generator.logs(texts, torch.full((len(texts),), c)) for c in (0, 1))
    assert (first.exp() * (first - second)).sum() > 0.05
    lots = torch.rand(50, 3, generator=torch.Generator().manual_seed(1))
    one, other = (generator.drawn(torch.full((50,), c), lots) for c in (0, 1))
    assert one.shape != other.shape or (one != other).any()
    with torch.no_grad():
        generator.categories.weight[1] = generator.categories.weight[0]
    assert torch.equal(
        generator.drawn(torch.zeros(50, dtype=torch.long), lots),
        generator.drawn(torch.ones(50, dtype=torch.long), lots),
    )


def test_every_text_is_drawn_by_the_lots_that_stand_for_it():
    """So that it is drawn as often as its probability says: lots just inside the ends of each
    word's interval."""
    generator = generator_of()
    texts = all_texts(generator)
    for category, place in ((0, 0.001), (1, 0.999)):
        lots = []
        for text in texts:
            row = []
            for n, word in enumerate([*text, 0][:3]):
                given = shares(generator, text[:n], category).tolist()
                row.append(sum(given[:word]) + place * given[word])
            lots.append(row + [0.5] * (3 - len(row)))
        found = generator.drawn(torch.full((len(texts),), category), torch.tensor(lots))
        assert found.tolist() == padded(texts).tolist()


def test_lots_at_the_edges_draw_words_that_can_be():
    """A lot of 0 must not draw the end before the first word, nor one near 1 a word that is not."""
    generator = generator_of()
    lots = torch.tensor([[0.0] * 3, [1 - 2**-24] * 3])
    found = generator.drawn(torch.zeros(2, dtype=torch.long), lots)
    assert found.tolist() == [[1, 0, 0], [3, 3, 3]]


def test_texts_are_drawn_without_a_gradient_and_no_longer_than_the_longest_of_them():
    generator = generator_of()
    found = generator.drawn(torch.zeros(2, dtype=torch.long), torch.tensor([[0.2, 0.0, 0.7], [0.5, 0.0, 0.0]]))
    assert found.shape == (2, 1), "the second column would be padding alone"
    assert not found.requires_grad


# --- the discriminator ---


def test_the_discriminator_reads_each_text_alone():
    discriminator = small(TextDiscriminator, 6, 3, 2)
    texts = [[1], [5, 4, 3, 2, 1, 2], [2, 2, 3]]
    found = discriminator(padded(texts))
    assert_same(found, torch.stack([judgement(discriminator, text) for text in texts]), rtol=1e-4, atol=1e-4)


# --- rewards ---


def test_the_gradient_of_drawn_texts_is_that_of_the_expected_reward():
    """By enumeration of all texts: the mean over them of the gradient of REINFORCE, baseline and
    all, is the exact one of the expected reward. A reward with the wrong sign, one that is shared
    by the words or a lost end would lead elsewhere."""
    made, _, _ = begun()
    made.generator = generator_of()
    texts, own = all_texts(made.generator), list(made.generator.parameters())
    rewards = torch.rand(len(texts), generator=torch.Generator().manual_seed(3))
    categories = torch.full((len(texts),), 1)
    shares_of_texts = made.generator.logs(padded(texts), categories).exp()
    exact = torch.autograd.grad(-(shares_of_texts * rewards).sum(), own, retain_graph=True)
    mean = [torch.zeros_like(each) for each in own]
    for text, reward, share in zip(texts, rewards, shares_of_texts.tolist(), strict=True):
        made.usual.fill_(0.4)
        loss = made.reinforced(torch.tensor([text]), categories[:1], reward[None])
        for total, gradient in zip(mean, torch.autograd.grad(loss, own), strict=True):
            total += share * gradient
    for one, other in zip(mean, exact, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5)
    assert max(each.abs().max() for each in exact) > 1e-2


def test_a_reward_counts_against_the_usual_one_of_its_category_before_the_step():
    """Worked by hand: one that had this text's own reward in it would be a biased one, and that of
    another category praises what comes easily."""
    made, _, _ = begun()
    made.usual.copy_(torch.tensor([0.5, 0.1, 0.7, 0.0]))
    texts, categories = padded([[2], [3, 2], [4]]), torch.tensor([1, 0, 1])
    rewards = torch.tensor([0.3, 0.2, 0.5])
    loss = made.reinforced(texts, categories, rewards)
    logs = made.generator.logs(texts, categories)
    expected = -(0.2 * logs[0] - 0.3 * logs[1] + 0.4 * logs[2]) / 3
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(made.usual, torch.tensor([0.47, 0.13, 0.7, 0.0]))


# --- a step ---


def expected_of(made: CategoryTexts, model: Model, batch: Batch, seed: int) -> dict[str, Tensor]:
    """Losses of a step, text by text."""
    torch.manual_seed(seed)
    lots = torch.rand(3, SIZES["longest"]).tolist()
    categories = batch.target.tolist()
    texts = [drawn_by(made.generator, c, lot) for c, lot in zip(categories, lots, strict=True)]
    assert len({len(text) for text in texts}) > 1
    real = [[word for word in row if word][:4] for row in batch.inputs["text"].ids.tolist()]
    judged = [judgement(made.discriminator, text) for text in texts]
    telling = [-torch.sigmoid(judgement(made.discriminator, text)).log() for text in real]
    telling += [-(1 - torch.sigmoid(score)).log() for score in judged]
    costs = [-answer(model, text, max(map(len, texts)))[c] for text, c in zip(texts, categories, strict=True)]
    rewards = [(torch.sigmoid(j) * (-cost).exp()).item() for j, cost in zip(judged, costs, strict=True)]
    usual = made.usual.tolist()
    logs = [log_of(made.generator, text, c) for text, c in zip(texts, categories, strict=True)]
    policy = -sum((r - usual[c]) * log for r, c, log in zip(rewards, categories, logs, strict=True)) / 3
    likelihood = -sum(log_of(made.generator, text, c) for text, c in zip(real, categories, strict=True)) / 3
    return {
        "discriminator": sum(telling) / 3,
        "likelihood": likelihood,
        "policy": policy,
        "made": sum(costs) / 3,
        "reward": torch.tensor(sum(rewards) / 3),
    }


@pytest.mark.parametrize("progress", [EARLY, LATE])
def test_losses_and_gradients_of_a_step_written_out(progress):
    """Each player's, before the generator is rewarded and after. A gradient through the rewards
    would teach the generator by nothing, and the classifier and the discriminator to please it."""
    made, model, batch = begun(policy=3.0, weight=2.0)
    made.usual.copy_(torch.tensor([0.2, 0.3, 0.1, 0.1]))
    known = torch.stack([answer(model, row, 5) for row in batch.inputs["text"].ids.tolist()])
    task = -known[torch.arange(3), batch.target].mean()
    parts = expected_of(made, model, batch, seed=4)
    late = progress >= 0.5
    expected = {
        "loss": task + (2 * parts["made"] if late else 0),
        "generator": parts["likelihood"] + (3 * parts["policy"] if late else 0),
        "discriminator": parts["discriminator"],
    }
    torch.manual_seed(4)
    found = made.losses(model, Step({"labelled": batch}, progress))
    for name, value in (expected | {name: parts[name] for name in ("likelihood", "made", "reward")}).items():
        torch.testing.assert_close(found[name], value, rtol=1e-4, atol=1e-5, msg=name)
    for player, members in made.players(model).items():
        own = [parameter for _, parameter in members]
        pairs = zip(
            members,
            torch.autograd.grad(found[player], own, retain_graph=True),
            torch.autograd.grad(expected[player], own, retain_graph=True),
            strict=True,
        )
        for (name, _), one, other in pairs:
            rows = slice(1, None) if name.startswith("table") else slice(None)  # padding is trained by nothing
            torch.testing.assert_close(one[rows], other[rows], rtol=1e-3, atol=1e-4, msg=name)


def test_no_player_moves_along_the_loss_of_another():
    """The loss of the generator holds the answers of both others, of which it must move none."""
    made, model, batch = begun()
    losses = made.losses(model, Step({"labelled": batch}, LATE))
    players = made.players(model)
    for (player, members), (other, loss) in itertools.product(players.items(), losses.items()):
        if other in players and other != player:
            own = [parameter for _, parameter in members]
            assert not loss.requires_grad or all(
                each is None for each in torch.autograd.grad(loss, own, retain_graph=True, allow_unused=True)
            ), f"{other} reaches {player}"


def test_each_parameter_has_one_player():
    made, model, _ = begun()
    players = made.players(model)
    assert list(players) == ["loss", "generator", "discriminator"]
    names = [name for members in players.values() for name, _ in members]
    own = [f"objective.{name}" for name, _ in made.named_parameters()]
    assert sorted(names) == sorted([*dict(model.named_parameters()), *own])
    found = dict(made.named_parameters()) | dict(model.named_parameters())
    for members in players.values():
        assert all(found[name.removeprefix("objective.")] is parameter for name, parameter in members)


def test_the_discriminator_alone_learns_to_tell_and_the_generator_to_deceive():
    """The game itself: with all else held still, steps along a player's loss raise its score."""
    made, model, batch = begun()

    def steps(player: str, loss: str, progress: float) -> tuple[float, float]:
        optimizer = torch.optim.Adam([p for _, p in made.players(model)[player]], lr=0.02)
        seen = []
        for n in range(60):
            torch.manual_seed(n)
            losses = made.losses(model, Step({"labelled": batch}, progress))
            optimizer.zero_grad()
            losses[player].backward()
            optimizer.step()
            seen.append(losses[loss].item())
        return float(np.mean(seen[:10])), float(np.mean(seen[-10:]))

    before, after = steps("discriminator", "discriminator", EARLY)
    assert after < 0.6 * before
    made.policy = 20.0
    before, after = steps("generator", "reward", LATE)
    assert after > 1.3 * before


def test_made_texts_read_as_the_view_reads_them():
    """The classifier would otherwise learn other texts than it is asked about: numbers, mask,
    lengths and spellings."""
    made, _, _ = begun()
    view = view_of(TEXTS)
    expected = view.collate(view.encode(["d a b", "c"]), np.arange(2))
    found = made.batch(expected.ids)
    for name in ("ids", "mask", "lengths", "spellings"):
        assert torch.equal(getattr(found, name), getattr(expected, name).to(getattr(found, name).dtype)), name


def test_penalties_of_the_wrapped_encoder_count_once():
    made, model, batch = begun(Penalised)
    found = made.losses(model, Step({"labelled": batch}, LATE))
    torch.testing.assert_close(found["loss"], found["task"] + 0.25 + found["made"])


def test_texts_and_sizes_are_those_asked_for():
    regime = CategorySentenceGAN(size=2, hidden=7, maps=5, longest=6)
    model, _, _ = prepared(regime)
    made = objective_of(model, Recipe(), regime)
    generator, discriminator = made.generator, made.discriminator
    assert generator.words.weight.shape == discriminator.words.weight.shape == (6, 2), "four words and two numbers"
    assert generator.categories.weight.shape == (4, 2)
    assert (generator.recurrence.hidden_size, generator.longest) == (7, 6)
    assert [layer.kernel_size for layer in discriminator.convolution.convolutions] == [(3,), (4,), (5,)]
    assert discriminator.output.in_features == 15


# --- a training ---


def test_who_answers_has_no_generator_and_dev_and_test_have_no_made_text(tmp_path, monkeypatch):
    """Generated texts belong to training alone: those that are scored are the corpus's own, and the
    model that answers is the wrapped encoder."""
    corpus = toy_corpus()
    model = toy_model(corpus, "avg_vectors")
    regime, settings = CategorySentenceGAN(**SIZES), Recipe(batch_size=16, epochs=2)
    made = objective_of(model, settings, regime)
    before = {name: getattr(corpus, name).inputs["text"]["ids"].values.copy() for name in ("train", "dev")}
    calls, drawn = [], made.generator.drawn
    monkeypatch.setattr(made.generator, "drawn", lambda *given: calls.append(len(given[0])) or drawn(*given))
    one = FitModule(model, made, corpus.train, corpus.dev, settings, 0.01, 0, ["accuracy"], "accuracy")
    fit(one, tmp_path, 1, "auto", "32", 2)
    assert sum(calls) == 2 * len(corpus.train), "one text for each labelled one, and none for dev"
    for name, ids in before.items():
        assert np.array_equal(getattr(corpus, name).inputs["text"]["ids"].values, ids)
    assert not any("generator" in name or "discriminator" in name for name in model.state_dict())
    assert {"train_generator", "train_discriminator", "train_reward", "train_made"} <= set(one.curve[0])


def test_epochs_before_the_texts_are_read_are_not_kept():
    """They are the plain classifier's, and the row would say nothing of the generator."""
    made, _, _ = begun()
    assert made.settled_after == 0.5
    assert isinstance(made.inner, Supervised)


def test_forms_without_rewards_and_without_texts():
    """The two that it is compared with: a generator of likelihood alone, and none at all."""
    entry = registry.entry("architectures", "cs_gan_likelihood")
    assert dict(entry.hyperparameters)["policy"] == 0.0
    made, model, batch = begun(policy=0.0, weight=0.0)
    losses = made.losses(model, Step({"labelled": batch}, LATE))
    torch.testing.assert_close(losses["generator"], losses["likelihood"])
    torch.testing.assert_close(losses["loss"], made.inner.losses(model, Step({"labelled": batch}, LATE))["loss"])


@pytest.mark.parametrize(
    ("wraps", "task", "reason"),
    [
        ("bilstm", "sst2", None),
        ("kim_cnn_rand", "ag_news", None),
        ("esim", "snli", "writes words of texts that have one class each, and a task of type match has none"),
        ("char_cnn", "sst2", "writes words, and char_cnn reads something else on sst2"),
        ("text_caps", "sst2", "needs the probabilities of classes, and the scores of text_caps stand for none"),
    ],
)
def test_what_it_cannot_train_is_told(wraps, task, reason):
    assert CategorySentenceGAN.unfit(registry.entry("tasks", task), {"wraps": wraps}) == reason


def test_a_category_makes_its_own_words_once_it_has_learnt_them():
    """The likelihood of few texts of two categories that share no word: the generator makes texts
    of the words of the category that it is asked for."""
    torch.manual_seed(0)
    generator = TextGenerator(6, 2, 8, 16, 4)
    texts, categories = padded([[2, 3], [3, 2], [4, 5, 4], [5]]), torch.tensor([0, 0, 1, 1])
    optimizer = torch.optim.Adam(generator.parameters(), lr=0.02)
    for _ in range(150):
        optimizer.zero_grad()
        loss = -generator.logs(texts, categories).mean()
        loss.backward()
        optimizer.step()
    assert loss.item() < math.log(2) + 0.1
    lots = torch.rand(200, 4)
    first = generator.drawn(torch.zeros(200, dtype=torch.long), lots)
    second = generator.drawn(torch.ones(200, dtype=torch.long), lots)
    assert (torch.isin(first, torch.tensor([0, 2, 3]))).float().mean() > 0.95
    assert (torch.isin(second, torch.tensor([0, 4, 5]))).float().mean() > 0.95
