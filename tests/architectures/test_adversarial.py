"""The mechanism of adversarial training: normalised vectors, moved by epsilon along the gradient of
each text's loss."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from architectures.adversarial.adversarial import AdversarialTraining
from harness import registry
from harness.kinds import TextEncoder
from harness.problems import problem
from harness.problems.base import Batch
from harness.problems.classify import ClassTarget
from harness.training.model import Model, build
from harness.views.words import PAD
from tests.support.moving_vectors import DIMS, TEXTS, losses_of, prepared, view_of
from tests.support.same import assert_same


class Penalised(TextEncoder):
    """An encoder with a penalty of its own, which word vectors can lower."""

    def __init__(self, width: int):
        super().__init__()
        self.hidden = torch.nn.Linear(width, 3)
        self.size = 3

    def forward(self, words: Any) -> Tensor:
        self.add_loss("penalty", 5 * (words.vectors - 3).square().mean())
        return torch.tanh(self.hidden(words.vectors)).sum(1)


def losses_and_inputs(
    regime: AdversarialTraining, model: Model, batch: Batch, monkeypatch: Any
) -> tuple[Tensor, list[dict], list[Tensor]]:
    """The regime's loss, and the inputs and values of the model's losses that it is made of."""
    inputs, values, compute = [], [], model.head.loss
    monkeypatch.setattr(model.head, "loss", lambda *a: values.append(compute(*a)) or values[-1])
    forward = model.head.forward
    monkeypatch.setattr(model.head, "forward", lambda encoder, i: inputs.append(i) or forward(encoder, i))
    return loss_of(regime, model, batch), inputs, values


def loss_of(regime: AdversarialTraining, model: Model, batch: Batch) -> Tensor:
    """The loss that training under the regime minimises."""
    return losses_of(regime, model, batch)["loss"]


@pytest.mark.parametrize("task_type", ["classify", "match"])
def test_each_text_moves_by_epsilon_and_its_padding_by_nothing(task_type, monkeypatch):
    """A norm over the batch, or over each word, would be another method; in a pair both texts
    move."""
    regime = AdversarialTraining(epsilon=0.7)
    model, batch, _ = prepared(regime, task_type)
    _, (clean, moved), _ = losses_and_inputs(regime, model, batch, monkeypatch)
    for field, words in moved.items():
        r = words.vectors - clean[field].vectors
        torch.testing.assert_close(r.flatten(1).norm(dim=1), torch.full((3,), 0.7))
        assert not r[words.ids == PAD].any() and r[words.ids != PAD].any(-1).all()


def test_the_move_is_along_the_gradient_and_the_loss_is_the_sum_of_both(monkeypatch):
    regime = AdversarialTraining(epsilon=0.01, weight=3.0)
    model, batch, _ = prepared(regime)
    found, (clean, moved), (before, after) = losses_and_inputs(regime, model, batch, monkeypatch)
    assert_same(found, before + 3 * after)
    (gradient,) = torch.autograd.grad(before, clean["text"].vectors, retain_graph=True)
    gradient = gradient * clean["text"].mask[..., None]
    r = moved["text"].vectors - clean["text"].vectors
    torch.testing.assert_close(torch.cosine_similarity(r.flatten(1), gradient.flatten(1)), torch.ones(3))
    expected_rise = 0.01 * gradient.flatten(1).norm(dim=1).sum()
    torch.testing.assert_close(after - before, expected_rise, rtol=0.05, atol=0)


def test_penalties_of_the_wrapped_encoder_count_once_and_direct_no_move(monkeypatch):
    """LEAM's regulariser is no part of -log p: counted in both terms it would weigh twice what the
    paper of LEAM says, and vectors would move to where the penalty grows."""
    regime = AdversarialTraining(epsilon=0.01, weight=1.0)
    model, batch, _ = prepared(regime, encoder=Penalised)
    found, (clean, moved), (before, after) = losses_and_inputs(regime, model, batch, monkeypatch)
    penalty = 5 * (clean["text"].vectors - 3).square().mean()
    assert_same(found, before + after + penalty)
    (gradient,) = torch.autograd.grad(before, clean["text"].vectors)
    gradient = gradient * clean["text"].mask[..., None]
    r = moved["text"].vectors - clean["text"].vectors
    torch.testing.assert_close(torch.cosine_similarity(r.flatten(1), gradient.flatten(1)), torch.ones(3))


def test_no_gradient_flows_through_the_move(monkeypatch):
    """The move is a constant for the parameters: their gradients are those of a loss that is given
    it."""
    regime = AdversarialTraining(epsilon=2.0)
    model, batch, _ = prepared(regime)
    loss, (clean, moved), _ = losses_and_inputs(regime, model, batch, monkeypatch)
    loss.backward()
    found = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
    r = (moved["text"].vectors - clean["text"].vectors).detach()
    model.zero_grad()
    words = model.read(batch.inputs)["text"]
    given = sum(
        model.loss_of({"text": words._replace(vectors=v)}, batch.target) for v in (words.vectors, words.vectors + r)
    )
    given.backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(found[name], parameter.grad)


def test_without_a_move_the_loss_is_doubled():
    regime = AdversarialTraining(epsilon=0.0)
    model, batch, _ = prepared(regime)
    assert_same(loss_of(regime, model, batch), 2 * model.loss(batch))


def test_growing_the_word_vectors_does_not_make_a_move_smaller():
    """This is what the normalisation is for."""
    regime = AdversarialTraining(epsilon=1.0)
    model, batch, _ = prepared(regime)
    before = loss_of(regime, model, batch)
    with torch.no_grad():
        model.table.table.tuned.weight.mul_(100)
    torch.testing.assert_close(loss_of(regime, model, batch), before, rtol=1e-3, atol=0)


@pytest.mark.parametrize(("channels", "tuned"), [("static", False), ("multichannel", True)])
def test_fixed_vectors_are_normalised_too_and_moved_without_being_trained(channels, tuned, monkeypatch):
    torch.manual_seed(0)
    regime, view, target = AdversarialTraining(), view_of(TEXTS), ClassTarget()
    target.fit([{"label": "x"}, {"label": "y"}])
    cnn = registry.load(registry.entry("architectures", "kim_cnn_static"))
    given = torch.randn(view.width, DIMS)
    model = build(cnn, problem("classify"), {"maps": 3, "channels": channels}, view, target, DIMS, given)
    regime.prepare(model, torch.tensor([0.0, 0.0, *view.vocabulary.counts]))
    batch = Batch({"text": view.collate(view.encode(TEXTS), np.arange(3))}, torch.tensor([0, 1, 1]), np.arange(3), 10)
    loss, (clean, moved), _ = losses_and_inputs(regime, model, batch, monkeypatch)
    loss.backward()
    assert (model.table.table.tuned.weight.grad is not None) == tuned
    r = moved["text"].vectors - clean["text"].vectors
    torch.testing.assert_close(r.flatten(1).norm(dim=1), torch.full((3,), 5.0))
    if channels == "multichannel":
        torch.testing.assert_close(clean["text"].static, clean["text"].vectors)


@pytest.mark.parametrize(
    ("wraps", "task", "fits"),
    [
        ("kim_cnn_rand", "sst2", True),
        ("bilstm", "snli", True),
        ("char_cnn", "sst2", False),
        ("bilstm", "fsdd_class", False),
    ],
)
def test_what_reads_no_word_vectors_is_unfit_and_told_so(wraps, task, fits):
    entry = registry.entry("tasks", task)
    reason = AdversarialTraining.unfit(entry, {"wraps": wraps, "epsilon": 5.0, "weight": 1.0})
    assert reason is None if fits else f"moves word vectors, and {wraps} reads none on {task}" == reason


def test_epsilon_may_be_for_a_text_of_so_many_numbers(monkeypatch):
    """The paper's epsilon is for reviews of 240 words: on a sentence of twenty it would be a move
    of another order, under which nothing is learnt."""
    assert registry.entry("architectures", "adversarial_scaled").hyperparameters["numbers"] == 240 * 256
    regime = AdversarialTraining(epsilon=0.6, numbers=5 * DIMS)
    model, batch, _ = prepared(regime)
    _, (clean, moved), _ = losses_and_inputs(regime, model, batch, monkeypatch)
    norms = (moved["text"].vectors - clean["text"].vectors).flatten(1).norm(dim=1)
    torch.testing.assert_close(norms, 0.6 * (torch.tensor([5.0, 2.0, 3.0]) / 5).sqrt())
