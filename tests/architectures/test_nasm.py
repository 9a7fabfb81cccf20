"""The neural answer selection model: attention by a latent variable in loops, the posterior of
training, and the bound."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributions import Normal, kl_divergence

from architectures.unsupervised.nasm import AnswerBound, NeuralAnswerSelection
from harness.objectives import Step
from harness.views.words import WordBatch
from tests.support.models import small
from tests.support.oracles import linear, recurrent, softmax_mean
from tests.support.same import assert_same

SIZES = {"hidden": 6, "latent": 3}
LENGTHS = ([3, 2, 4], [5, 1, 2])
LABELS = torch.tensor([1, 0, 1])


def text(lengths: list[int], seed: int) -> WordBatch:
    generator = torch.Generator().manual_seed(seed)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    vectors = 2 * torch.randn(*mask.shape, 5, generator=generator)
    return WordBatch(mask.long(), mask, torch.tensor(lengths), vectors)


@pytest.fixture
def model() -> NeuralAnswerSelection:
    return small(NeuralAnswerSelection, 5, stretch=4.0, **SIZES)


@pytest.fixture
def pair() -> tuple[WordBatch, WordBatch]:
    return text(LENGTHS[0], 1), text(LENGTHS[1], 2)


@pytest.fixture
def objective(model: NeuralAnswerSelection) -> AnswerBound:
    return small(AnswerBound, model, None, stretch=1.0)


def gaussian(network: nn.Module, given: Tensor) -> Normal:
    """The distribution that a network gives, written out."""
    first, second = network.below[0], network.below[2]
    hidden = torch.tanh(linear(second, torch.tanh(linear(first, given))))
    return Normal(linear(network.mean, hidden), linear(network.log_deviation, hidden).exp())


def read(model: NeuralAnswerSelection, pair: tuple[WordBatch, WordBatch], row: int) -> tuple[Tensor, Tensor]:
    """The last state of the question and all states of the answer of one pair, in loops."""
    question, answer = (text.vectors[row, : text.lengths[row]] for text in pair)
    return recurrent(model.question, question)[-1], recurrent(model.answer, answer)


def score(model: NeuralAnswerSelection, question: Tensor, states: Tensor, latent: Tensor) -> Tensor:
    """The score of one pair by one latent variable."""
    strengths = [
        linear(model.weight, torch.tanh(linear(model.asked, latent) + linear(model.offered, state)))[0]
        for state in states
    ]
    context = softmax_mean(strengths, states)
    joined = torch.tanh(linear(model.context, context) + linear(model.last, states[-1]))
    return question @ model.match.weight[0] @ joined + model.match.bias[0]


# --- the answer ---


def test_scores_are_those_of_an_attention_by_the_priors_mean_in_loops(model, pair):
    """Padding and the other pairs change nothing, and nothing is drawn."""
    expected = []
    for row in range(3):
        question, states = read(model, pair, row)
        expected.append(score(model, question, states, gaussian(model.prior, question).mean))
    found = model.eval()(*pair)
    assert_same(found, torch.stack(expected), rtol=1e-4, atol=1e-4)
    assert torch.equal(found, model(*pair))


def test_the_latent_variable_moves_the_attention(model, pair):
    """Not the score alone: of an answer of one word, whose attention is 1, it changes nothing."""
    states = model.states(*pair)
    one, two = (model.scored(*states, pair[1].mask, torch.full((3, 3), value)) for value in (-2.0, 2.0))
    assert torch.isclose(one, two).tolist() == [False, True, False]


def test_the_prior_knows_the_question_alone(model, pair):
    """Another answer leaves it where it was: at the test nobody knows the right one."""
    question, _, _ = model.states(*pair)
    other, _, _ = model.states(pair[0], text(LENGTHS[1], 3))
    means = model.prior(question).mean
    assert torch.equal(means, model.prior(other).mean)
    assert not torch.isclose(means[0], means[1]).any() and not torch.isclose(means[1], means[2]).any()


def test_each_sum_has_one_bias_and_attention_none(model, objective):
    """A second bias of a sum learns nothing of its own; labels are two."""
    found = {name: tuple(value.shape) for name, value in model.named_parameters() if name.partition(".")[0] in
             ("asked", "offered", "weight", "context", "last", "match")}  # fmt: skip
    squares = {f"{name}.weight": (6, 6) for name in ("offered", "context", "last")}
    biases = {"asked.bias": (6,), "context.bias": (6,), "match.bias": (1,)}
    assert found == squares | biases | {"asked.weight": (6, 3), "weight.weight": (1, 6), "match.weight": (1, 6, 6)}
    assert objective.labels.weight.shape == (2, 6)
    widths = [tuple(network.below[0].weight.shape) for network in (model.prior, objective.posterior)]
    assert widths == [(6, 6), (18, 18)], "as many units as what each reads"


def test_each_text_is_read_by_as_many_layers_as_asked_for():
    for layers in (1, 2):
        made = NeuralAnswerSelection(5, layers=layers, **SIZES)
        assert len(made.question.forwards) == len(made.answer.forwards) == layers


# --- the bound ---


class Learner:
    """A model that reads its inputs as they are."""

    def __init__(self, encoder: NeuralAnswerSelection):
        self.encoder = encoder

    def read(self, inputs: dict[str, WordBatch]) -> dict[str, WordBatch]:
        return inputs


class Labelled:
    """A batch of pairs with their labels."""

    def __init__(self, pair: tuple[WordBatch, WordBatch], labels: Tensor):
        self.inputs, self.target = {"first": pair[0], "second": pair[1]}, (labels, torch.zeros_like(labels))


def losses_of(
    model: NeuralAnswerSelection, objective: AnswerBound, pair: tuple[WordBatch, WordBatch], labels: Tensor = LABELS
) -> dict[str, Tensor]:
    torch.manual_seed(3)
    return objective.losses(Learner(model), Step({"labelled": Labelled(pair, labels)}, 0.0))


def test_the_loss_is_the_bound_written_out(model, pair, objective):
    """The label by a draw of the posterior, which reads question, answer and label, and its
    divergence from the prior, in values and gradients."""
    losses = losses_of(model, objective, pair)
    torch.manual_seed(3)
    numbers = torch.randn(3, 3)
    surprises, divergences = [], []
    for row, label in enumerate(LABELS.tolist()):
        question, states = read(model, pair, row)
        given = torch.cat([question, states[-1], objective.labels.weight[label]])
        posterior, prior = gaussian(objective.posterior, given), gaussian(model.prior, question)
        logit = score(model, question, states, posterior.mean + posterior.stddev * numbers[row])
        surprises.append(-F.logsigmoid(logit if label else -logit))
        divergences.append(kl_divergence(posterior, prior).sum())
    assert_same(losses["task"], torch.stack(surprises).mean(), rtol=1e-4, atol=1e-4)
    assert_same(losses["divergence"], torch.stack(divergences).mean(), rtol=1e-4, atol=1e-4)
    assert_same(losses["loss"], torch.stack(surprises).mean() + torch.stack(divergences).mean(), rtol=1e-4, atol=1e-4)


def test_the_posterior_reads_the_label(model, pair, objective):
    """A divergence that knows no label is that of two networks which read the same."""
    one, two = (losses_of(model, objective, pair, labels)["divergence"] for labels in (LABELS, 1 - LABELS))
    assert not torch.isclose(one, two)


def test_what_is_of_training_alone_is_no_part_of_the_model(model, objective):
    """The posterior would count among the parameters of a row that never asks it."""
    assert not [name for name, _ in model.named_parameters() if "posterior" in name or "label" in name]
    assert {name.partition(".")[0] for name, _ in objective.named_parameters()} == {"labels", "posterior"}
    assert NeuralAnswerSelection.trained_by is AnswerBound


def test_each_step_draws_other_numbers(model, pair, objective):
    """Torch's generator is seeded by the harness, not by the pass."""
    torch.manual_seed(0)
    step = Step({"labelled": Labelled(pair, LABELS)}, 0.0)
    first, second = (objective.losses(Learner(model), step)["task"] for _ in range(2))
    assert not torch.isclose(first, second)
