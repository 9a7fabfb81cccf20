"""Moves of word vectors: the normalised table, the norm of a move over a text, and the move that
changes an answer most."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from architectures.blocks.moved_vectors import (
    MovesUnlabelled,
    MovesVectors,
    NormalizedTable,
    direction,
    divergence,
    log_shares,
    moves_along,
    probabilities_missing,
    same_draws,
    virtual_loss,
)
from harness import registry
from harness.kinds import Regime
from harness.objectives import Objective
from harness.training.model import WordTable
from harness.views.sentences import Sentences
from harness.views.tree import TreeBatch, Trees
from tests.support.moving_vectors import DIMS, TEXTS, Dropping, WrittenOut, prepared, view_of


class Moving(MovesUnlabelled):
    """A regime of which the table alone is used."""

    def __init__(self, wraps: str = "lstm"):
        self.wraps = wraps


def test_a_gradient_flows_through_the_moments():
    """The mean of the normalised vectors is 0 and their variance 1 whatever the table holds, so
    neither has a gradient. Constant moments would let a step shift or grow all vectors."""
    torch.manual_seed(0)
    counts = torch.tensor([0.0, 0.0, 3.0, 1.0, 2.0])
    table = NormalizedTable(WordTable(5, DIMS, "tuned"), counts)
    weight = torch.randn(5, DIMS, dtype=torch.float64, requires_grad=True)
    shares = table.frequencies.double()
    table.frequencies = shares
    for power in (1, 2):
        moment = (shares @ table.normalized(weight, weight) ** power).sum()
        (gradient,) = torch.autograd.grad(moment, weight)
        assert gradient.abs().max() < 1e-5


def test_the_unknown_word_weighs_as_if_seen_once_and_padding_nothing():
    frequencies = NormalizedTable(WordTable(4, DIMS, "tuned"), torch.tensor([0.0, 0.0, 3.0, 4.0])).frequencies
    torch.testing.assert_close(frequencies, torch.tensor([0, 1, 3, 4]) / 8)


def test_vectors_have_mean_0_and_variance_1_over_the_training_text():
    """Over the running text and not over the vocabulary: a frequent word weighs more."""
    torch.manual_seed(0)
    view = view_of(TEXTS)
    counts = torch.tensor([0.0, 0.0, *view.vocabulary.counts])
    table = NormalizedTable(WordTable(view.width, DIMS, "tuned"), counts)
    words = table(view.collate(view.encode(TEXTS), np.arange(3)))
    # The unknown word weighs as one more word of the text.
    unknown = table(view.collate(view.encode(["z"]), np.array([0]))).vectors[0]
    running = torch.cat([words.vectors[words.mask], unknown])
    torch.testing.assert_close(running.mean(0), torch.zeros(DIMS), atol=1e-6, rtol=0)
    torch.testing.assert_close(running.var(0, correction=0), torch.ones(DIMS), atol=1e-3, rtol=0)
    assert not words.vectors[~words.mask].any()


def test_a_text_that_no_word_can_change_stays_where_it_is():
    words = view_of(TEXTS).collate(view_of(TEXTS).encode(TEXTS), np.arange(3))
    assert not direction(words, torch.zeros(3, 5, DIMS)).any()


def test_the_norm_is_over_a_whole_document_and_over_the_leaves_of_one_tree():
    """Their vectors stand in sentences, or in one row for all trees of the batch."""
    documents, trees = Sentences(min_count=1), Trees(min_count=1)
    documents.fit(texts := ["A b. C d e.", "B a."])
    document = documents.collate(documents.encode(texts), np.arange(2))
    r = direction(document, torch.randn(*document.ids.shape, DIMS))
    torch.testing.assert_close(r.flatten(1).norm(dim=1), torch.ones(2))
    trees.fit(brackets := ["(1 (2 a) (2 (2 b) (2 c)))", "(1 (2 c) (2 a))"])
    tree: TreeBatch = trees.collate(trees.encode(brackets), np.arange(2))
    r = direction(tree, torch.randn(len(tree.ids), DIMS))
    leaves = tree.node_text[tree.leaf_nodes]
    assert sorted(leaves.tolist()) == [0, 0, 0, 1, 1]
    torch.testing.assert_close(torch.stack([r[leaves == text].norm() for text in (0, 1)]), torch.ones(2))


@pytest.mark.parametrize("size", [1.0, 1e-12, 1e-17, 1e-21, 1e-25, 1e-40])
def test_no_gradient_is_so_small_that_its_text_is_moved_further(size):
    """Where a model is sure of its answer: squares of 1e-25 are 0, and a move along such a gradient
    went as far as 1e13."""
    words = view_of(TEXTS).collate(view_of(TEXTS).encode(TEXTS), np.arange(3))
    torch.manual_seed(0)
    gradient = torch.randn(3, 5, DIMS)
    norms = direction(words, size * gradient).flatten(1).norm(dim=1)
    assert (norms <= 1.0001).all()
    if size > 1e-18:
        torch.testing.assert_close(direction(words, size * gradient), direction(words, gradient))


def test_moves_are_as_long_for_each_number_whatever_the_text():
    """With the same norm in each text a short one is moved far and a long one hardly."""
    words = view_of(TEXTS).collate(view_of(TEXTS).encode(TEXTS), np.arange(3))
    found = moves_along({"text": words}, [torch.randn(3, 5, DIMS)], 0.5, 2 * DIMS)["text"]
    torch.testing.assert_close(found.flatten(1).norm(dim=1), 0.5 * torch.tensor([5 / 2, 1, 3 / 2]).sqrt())
    trees = Trees(min_count=1)
    trees.fit(brackets := ["(1 (2 a) (2 (2 b) (2 c)))", "(1 (2 c) (2 a))"])
    tree: TreeBatch = trees.collate(trees.encode(brackets), np.arange(2))
    found = moves_along({"text": tree}, [torch.randn(len(tree.ids), DIMS)], 0.5, 2 * DIMS)["text"]
    leaves = tree.node_text[tree.leaf_nodes]
    norms = torch.stack([found[leaves == text].norm() for text in (0, 1)])
    lengths = torch.stack([(leaves == text).sum() for text in (0, 1)])
    torch.testing.assert_close(norms, 0.5 * (lengths / 2).sqrt())


def test_what_is_drawn_under_a_seed_is_the_same_and_leaves_no_trace():
    """Passes that drop other numbers differ before any move; a generator that is set back would
    repeat the masks of the whole training."""
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    with same_draws(7):
        first = torch.rand(4)
    with same_draws(7):
        second = torch.rand(4)
    torch.testing.assert_close(first, second)
    torch.testing.assert_close(torch.rand(4), expected)


def test_the_divergence_is_that_of_kullback_and_leibler_from_the_first():
    p, q = torch.tensor([[0.5, 0.5], [0.9, 0.1]]), torch.tensor([[0.25, 0.75], [0.9, 0.1]])
    expected = torch.tensor([0.5 * np.log(2) + 0.5 * np.log(2 / 3), 0.0], dtype=torch.float)
    torch.testing.assert_close(divergence(p.log(), q.log()), expected)


@pytest.mark.parametrize(("epsilon", "small"), [(0.7, 0.1), (3.0, 3.0)])
def test_the_virtual_loss_is_the_one_written_out_and_so_are_its_gradients(epsilon, small, monkeypatch):
    """Normalised vectors, one step of the power method from a move of norm ``small`` over each
    text, the model's answer and the move as constants: each one left out gives another gradient."""
    model, batch, _ = prepared(Moving())
    model.double()
    words = batch.inputs["text"]
    drawn = torch.randn(3, 5, DIMS, dtype=torch.float64)
    monkeypatch.setattr(torch, "randn_like", lambda vectors: drawn)
    inputs = model.read(batch.inputs)
    found = virtual_loss(model, inputs, log_shares(model, inputs), 1, epsilon, small)
    written = WrittenOut(model, view_of(TEXTS).vocabulary.counts)
    expected = written.virtual(words.ids, drawn, epsilon, small)
    assert expected > 1e-3
    torch.testing.assert_close(found, expected)
    found.backward()
    expected.backward()
    for name, parameter in model.named_parameters():
        if name == "table.table.tuned.weight":
            assert written.parameters[name].grad[1:].abs().max() > 1e-4
            torch.testing.assert_close(parameter.grad[1:], written.parameters[name].grad[1:])
        else:
            torch.testing.assert_close(parameter.grad, written.parameters[name].grad)


def test_the_move_found_changes_the_answers_more_than_those_drawn():
    """A direction by lot is what the method is there to better."""
    model, batch, _ = prepared(Moving())
    inputs = model.read(batch.inputs)
    known = log_shares(model, inputs)
    found = virtual_loss(model, inputs, known, 1, 0.5, 0.1)
    for _ in range(20):
        moves = moves_along(inputs, [torch.randn_like(inputs["text"].vectors)], 0.5)
        words = inputs["text"]._replace(vectors=inputs["text"].vectors + moves["text"])
        assert found > divergence(known, log_shares(model, {"text": words})).mean()


def test_all_passes_drop_the_same_numbers():
    """Two draws of dropout answer otherwise without any move, and the gradient of that difference
    would lead all moves."""
    model, batch, _ = prepared(Moving(), encoder=Dropping)
    inputs = model.read(batch.inputs)
    with same_draws(5):
        known = log_shares(model, inputs)
    torch.testing.assert_close(virtual_loss(model, inputs, known, 5, 0.0, 0.1), torch.tensor(0.0))
    assert virtual_loss(model, inputs, log_shares(model, inputs), 5, 0.0, 0.1) > 1e-3


@pytest.mark.parametrize(
    ("wraps", "task", "reason"),
    [
        ("lstm", "sst2", None),
        ("bilstm", "snli", None),
        ("char_cnn", "sst2", "moves word vectors, and char_cnn reads none on sst2"),
        ("qa_lstm", "wikiqa", "needs the probabilities of classes, and a task of type rank has none"),
        ("text_caps", "sst2", "needs the probabilities of classes, and the scores of text_caps stand for none"),
    ],
)
def test_what_has_no_probabilities_of_classes_is_unfit_and_told_so(wraps, task, reason):
    assert issubclass(MovesUnlabelled, Regime)
    assert MovesUnlabelled.unfit(registry.entry("tasks", task), {"wraps": wraps}) == reason


def test_a_system_with_an_objective_of_its_own_is_not_trained_by_another(monkeypatch):
    entry = registry.entry("architectures", "lstm")
    monkeypatch.setattr(registry.load(entry), "trained_by", Objective)
    for regime in (MovesVectors, MovesUnlabelled):
        reason = regime.unfit(registry.entry("tasks", "sst2"), {"wraps": "lstm"})
        assert reason == "needs a supervised loss, and lstm has an objective of its own"
    assert probabilities_missing(registry.load(entry), "lstm") == reason
