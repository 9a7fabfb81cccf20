"""The mechanism of the CNN-RNN: the convolutions learn the labels alone at first; labels are
written one after the other by an LSTM that the text begins, none twice, and found by a beam."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor

from architectures.hybrid.cnn_rnn_ml import CNNRNN, LabelsAloneFirst
from harness.layers.beam import greedy
from harness.problems import problem
from harness.problems.base import Batch
from harness.problems.multilabel import LabelSetTarget
from harness.registry import Recipe
from harness.training.model import Model, build, objective_of
from harness.views.words import Words
from tests.support.acting import batch_of, step_of
from tests.support.batches import random_texts
from tests.support.models import small
from tests.support.oracles import linear, lstm_step
from tests.support.same import assert_same

WIDTH, LABELS = 4, 4
END = LABELS

texts = partial(random_texts, seed=1, width=WIDTH)


def model_of(**settings) -> CNNRNN:
    sizes = {"maps": 3, "windows": (1, 2), "hidden": 5, "label_size": 3} | settings
    return small(CNNRNN, WIDTH, LABELS, stretch=2.0, **sizes)


def told(model: CNNRNN, features: Tensor, labels: list[int]) -> list[Tensor]:
    """Log-probability of each label of a sequence and of the end, for one text."""
    h = linear(model.first, features)
    c, before, found = torch.zeros_like(h), END, []
    for place, label in enumerate([*labels, END]):
        h, c = lstm_step(model.cell, model.labels.weight[before], h, c)
        scores = linear(model.output, h)
        free = [each for each in range(LABELS + 1) if each not in labels[:place]]
        found.append(scores[label] - scores[free].logsumexp(0))
        before = label
    return found


def test_the_loss_is_that_of_the_labels_in_falling_frequency_and_the_end():
    """Counted over the texts that training has shown; of equally frequent ones the first. A text
    without labels ends at once."""
    model, batch = model_of().train(), texts((7, 5, 4, 3))
    model.convolutions.dropout.p = 0.0
    model.counts.copy_(torch.tensor([1.0, 5.0, 5.0, 2.0]))
    gold = torch.tensor([[1.0, 1, 0, 1], [0, 0, 0, 0], [1, 0, 1, 0], [0, 1, 1, 1]])
    features = model(batch)
    found = model.set_losses(features, gold)
    assert model.counts.tolist() == [3, 7, 7, 4]
    orders = [[1, 3, 0], [], [2, 0], [1, 2, 3]]
    expected = [-sum(told(model, row, order)) for row, order in zip(features, orders, strict=True)]
    assert_same(found, torch.stack(expected), rtol=1e-4, atol=1e-5)
    model.eval().set_losses(features, gold)
    assert model.counts.tolist() == [3, 7, 7, 4], "dev is not counted"


def sequences() -> list[list[int]]:
    """All sequences of labels without one that stands twice."""
    return [list(order) for n in range(LABELS + 1) for order in itertools.permutations(range(LABELS), n)]


@pytest.mark.parametrize(("less", "counts"), [(0.5, {0, 1}), (2.5, {1, 4})])
def test_a_wide_beam_finds_the_most_probable_sequence_of_all_and_says_it(less, counts):
    """Said labels have more than one half, by their probability at their step; others less."""
    model, batch = model_of(beam=100), texts((7, 5, 4, 3, 2, 1))
    with torch.no_grad():
        model.output.bias[END] -= less
    features = model(batch)
    found = model.set_probabilities(features)
    lengths = set()
    for row, text in zip(found, features, strict=True):
        best = max(sequences(), key=lambda order, text=text: float(sum(told(model, text, order)).detach()))
        steps = told(model, text, best)
        lengths.add(len(best))
        for place, label in enumerate(best):
            torch.testing.assert_close(row[label], 0.5 + steps[place].exp() / 2)
        for label in {*range(LABELS)} - {*best}:
            instead = told(model, text, [*best, label])[len(best)].exp() / 2
            torch.testing.assert_close(row[label], instead)
    assert lengths == counts


@pytest.mark.parametrize("beam", [1, 2])
def test_each_label_is_said_once_and_a_beam_of_one_is_greedy(beam):
    model, batch = model_of(beam=beam), texts((7, 5, 4, 3))
    with torch.no_grad():
        model.output.bias[END] = -20.0  # every label is said before the end
    features = model(batch)
    found = model.set_probabilities(features)
    assert (found > 0.5).all() and (found <= 1).all()
    if beam == 1:
        written = greedy(model.step, model.start(features), END, END, LABELS + 1)
        assert all(sorted(labels) == [*range(LABELS)] for labels in written)
        for row, text, labels in zip(found, features, written, strict=True):
            steps = torch.stack(told(model, text, labels)[:-1])
            torch.testing.assert_close(row[torch.tensor(labels)], 0.5 + steps.exp() / 2)


def test_without_a_text_it_is_a_language_model_of_labels():
    """The text acts through the first state alone."""
    model = model_of()
    with torch.no_grad():
        model.first.weight.zero_()
    found = model.set_probabilities(model(texts((7, 3, 1))))
    torch.testing.assert_close(found, found[:1].expand_as(found))


LABEL_SETS = [["a", "c"], [], ["b", "d"]]


def learning() -> tuple[LabelsAloneFirst, Model, Batch]:
    """A model of four labels in training, its objective, and a batch of three texts."""
    torch.manual_seed(0)
    view, target, rows = Words(min_count=1), LabelSetTarget(), [{"labels": labels} for labels in LABEL_SETS]
    view.fit(["u v w x", "x u", "w"])
    target.fit(rows)
    settings = {"maps": 3, "windows": (1, 2), "hidden": 5, "label_size": 3, "dropout": 0.0}
    model = build(CNNRNN, problem("multilabel"), settings, view, target, WIDTH)
    gold = target.collate(target.encode(rows, view), np.arange(3))
    batch = batch_of(view, ["u v w x", "x u", "w"], [0, 0, 0])
    objective = objective_of(model, Recipe())
    assert isinstance(objective, LabelsAloneFirst)
    return objective, model.train(), batch._replace(target=gold)


@pytest.mark.parametrize("progress", [0.0, 0.24])
def test_the_convolutions_learn_each_label_alone_in_the_first_quarter(progress):
    """By the features and a layer that is no part of the model; all else stays as it is. What the
    order of the labels stands on is counted already."""
    objective, model, batch = learning()
    loss = objective.losses(model, step_of(batch, progress))["loss"]
    assert model.encoder.counts.tolist() == [1, 1, 1, 1]
    features = model.encoder(model.read(batch.inputs)["text"])
    assert features.shape == (3, 6)
    expected = torch.tensor(0.0)
    for row, wanted in zip(features, batch.target, strict=True):
        for score, said in zip(linear(objective.alone, row), wanted, strict=True):
            expected = expected - (score if said else -score).neg().exp().add(1).reciprocal().log()
    assert_same(loss, expected / 3)
    loss.backward()
    later = (model.encoder.first, model.encoder.labels, model.encoder.cell, model.encoder.output)
    assert all(parameter.grad is None for layer in later for parameter in layer.parameters())


@pytest.mark.parametrize("progress", [0.25, 0.99])
def test_then_all_of_it_learns_to_write_the_labels(progress):
    objective, model, batch = learning()
    assert objective.settled_after == 0.25 and objective.in_little
    loss = objective.losses(model, step_of(batch, progress))["loss"]
    features, written = model.encoder(model.read(batch.inputs)["text"]), [[0, 2], [], [1, 3]]
    expected = sum(-sum(told(model.encoder, row, labels)) for row, labels in zip(features, written, strict=True))
    assert_same(loss, expected / 3)


def test_sizes():
    model = CNNRNN(300, 90)
    assert model.convolutions.size == 300 and model.first.weight.shape == (512, 300)
    assert model.labels.weight.shape == (91, 64) and model.output.weight.shape == (91, 512)
    assert model.beam == 3 and model.convolutions.dropout.p == 0.5
    assert CNNRNN.can_answer("multilabel") and not CNNRNN.can_answer("classify")
