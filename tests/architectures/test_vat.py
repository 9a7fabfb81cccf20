"""The mechanism of virtual adversarial training: the labelled loss, and the divergence that a move
of texts without labels makes."""

from __future__ import annotations

import pytest
import torch

from architectures.adversarial.vat import VirtualAdversarialTraining
from harness import registry
from tests.support.moving_vectors import DIMS, TEXTS, Dropping, WrittenOut, losses_of, prepared, view_of


def test_the_loss_is_that_of_labels_and_the_virtual_one_of_texts_without(monkeypatch):
    """The virtual loss of the labelled batch would leave the other texts unread, and a loss without
    its weight would be another."""
    regime = VirtualAdversarialTraining(epsilon=0.8, small=0.3, weight=2.5)
    model, labelled, unlabelled = prepared(regime)
    model.double()
    drawn = torch.randn(3, 5, DIMS, dtype=torch.float64)
    monkeypatch.setattr(torch, "randn_like", lambda vectors: drawn)
    found = losses_of(regime, model, labelled, unlabelled)
    written = WrittenOut(model, view_of(TEXTS).vocabulary.counts)
    logs = written.logs(written.vectors(labelled.inputs["text"].ids))
    known = -logs[torch.arange(3), labelled.target].mean()
    virtual = written.virtual(unlabelled.inputs["text"].ids, drawn, 0.8, 0.3)
    assert virtual > 1e-3
    torch.testing.assert_close(found["virtual"], virtual)
    torch.testing.assert_close(found["loss"], known + 2.5 * virtual)
    found["loss"].backward()
    (known + 2.5 * virtual).backward()
    for name, parameter in model.named_parameters():
        rows = slice(1, None) if name.startswith("table") else slice(None)  # padding is trained by nothing
        torch.testing.assert_close(parameter.grad[rows], written.parameters[name].grad[rows])


def test_the_move_grows_with_the_root_of_the_length_in_the_scaled_form(monkeypatch):
    assert registry.entry("architectures", "vat_scaled").hyperparameters["numbers"] == 240 * 256
    regime = VirtualAdversarialTraining(epsilon=0.8, numbers=5 * DIMS)
    model, labelled, unlabelled = prepared(regime)
    read = []
    forward = model.head.forward
    monkeypatch.setattr(model.head, "forward", lambda encoder, inputs: read.append(inputs) or forward(encoder, inputs))
    losses_of(regime, model, labelled, unlabelled)
    _, clean, begun, moved = (inputs["text"].vectors for inputs in read)
    torch.testing.assert_close((begun - clean).flatten(1).norm(dim=1), torch.full((3,), 0.1))
    norms = (moved - clean).flatten(1).norm(dim=1)
    torch.testing.assert_close(norms, 0.8 * (torch.tensor([3.0, 2.0, 5.0]) / 5).sqrt())


def test_without_a_move_nothing_is_added_whatever_dropout_draws():
    """Two draws of dropout would answer otherwise, and the model would be trained to ignore its
    dropout."""
    regime = VirtualAdversarialTraining(epsilon=0.0)
    model, labelled, unlabelled = prepared(regime, encoder=Dropping)
    assert losses_of(regime, model, labelled, unlabelled)["virtual"].abs() < 1e-6


def test_dropped_numbers_differ_from_step_to_step(monkeypatch):
    """One mask of dropout for the whole training would be no dropout."""
    drawn = torch.randn(3, 5, DIMS)
    monkeypatch.setattr(torch, "randn_like", lambda vectors: drawn)
    regime = VirtualAdversarialTraining()
    model, labelled, unlabelled = prepared(regime, encoder=Dropping)
    first, second = (losses_of(regime, model, labelled, unlabelled)["virtual"] for _ in range(2))
    assert (first - second).abs() > 1e-4


@pytest.mark.parametrize("task_type", ["classify", "match"])
def test_every_text_is_moved(task_type, monkeypatch):
    """In a pair both texts move, and labels of neither are read."""
    regime = VirtualAdversarialTraining(epsilon=0.7)
    model, labelled, unlabelled = prepared(regime, task_type)
    read = []
    forward = model.head.forward
    monkeypatch.setattr(model.head, "forward", lambda encoder, inputs: read.append(inputs) or forward(encoder, inputs))
    losses_of(regime, model, labelled, unlabelled)
    _, clean, _, moved = read
    for field, words in moved.items():
        r = words.vectors - clean[field].vectors
        torch.testing.assert_close(r.flatten(1).norm(dim=1), torch.full((3,), 0.7))
