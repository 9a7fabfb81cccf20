"""The mechanism of adversarial training: normalised vectors, moved by epsilon along the gradient of
each text's loss."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from architectures.adversarial.adversarial import AdversarialTraining, NormalizedTable, direction
from harness import registry
from harness.kinds import TextEncoder
from harness.objectives import Step
from harness.problems import problem
from harness.problems.base import Batch
from harness.problems.classify import ClassTarget
from harness.registry import Recipe
from harness.training.model import Model, WordTable, build, objective_of
from harness.views.sentences import Sentences
from harness.views.tree import TreeBatch, Trees
from harness.views.words import PAD, Words
from tests.support.same import assert_same

TEXTS = ["a b b c d", "c a", "d d b"]
DIMS = 4


class Penalised(TextEncoder):
    """An encoder with a penalty of its own, which word vectors can lower."""

    def __init__(self, width: int):
        super().__init__()
        self.hidden = torch.nn.Linear(width, 3)
        self.size = 3

    def forward(self, words: Any) -> Tensor:
        self.add_loss("penalty", 5 * (words.vectors - 3).square().mean())
        return torch.tanh(self.hidden(words.vectors)).sum(1)


class Summed(TextEncoder):
    """A smooth encoder that also reads padding, so that a move there would be seen."""

    def __init__(self, width: int):
        super().__init__()
        self.hidden = torch.nn.Linear(width, 3)
        self.size = 3

    def forward(self, words: Any) -> Tensor:
        return torch.tanh(self.hidden(words.vectors)).sum(1)


def view_of(texts: list[str]) -> Words:
    view = Words(min_count=1)
    view.fit(texts)
    return view


def prepared(
    regime: AdversarialTraining, task_type: str = "classify", encoder: type[TextEncoder] = Summed
) -> tuple[Model, Batch]:
    """A model under the regime and a batch for it: one text per row, or two of different
    lengths."""
    torch.manual_seed(0)
    view, target = view_of(TEXTS), ClassTarget()
    target.fit([{"label": "x"}, {"label": "y"}])
    model = build(encoder, problem(task_type), {}, view, target, DIMS)
    regime.prepare(model, torch.tensor([0.0, 0.0, *view.vocabulary.counts]))
    fields = {"text": TEXTS} if task_type == "classify" else {"first": TEXTS, "second": ["b", "a c d d", "b b"]}
    inputs = {field: view.collate(view.encode(texts), np.arange(3)) for field, texts in fields.items()}
    return model, Batch(inputs, torch.tensor([0, 1, 1]), np.arange(3), 10)


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
    return objective_of(model, Recipe(), regime).losses(model, Step({"labelled": batch}, 0.0))["loss"]


@pytest.mark.parametrize("task_type", ["classify", "match"])
def test_each_text_moves_by_epsilon_and_its_padding_by_nothing(task_type, monkeypatch):
    """A norm over the batch, or over each word, would be another method; in a pair both texts
    move."""
    regime = AdversarialTraining(epsilon=0.7)
    model, batch = prepared(regime, task_type)
    _, (clean, moved), _ = losses_and_inputs(regime, model, batch, monkeypatch)
    for field, words in moved.items():
        r = words.vectors - clean[field].vectors
        torch.testing.assert_close(r.flatten(1).norm(dim=1), torch.full((3,), 0.7))
        assert not r[words.ids == PAD].any() and r[words.ids != PAD].any(-1).all()


def test_the_move_is_along_the_gradient_and_the_loss_is_the_sum_of_both(monkeypatch):
    regime = AdversarialTraining(epsilon=0.01, weight=3.0)
    model, batch = prepared(regime)
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
    model, batch = prepared(regime, encoder=Penalised)
    found, (clean, moved), (before, after) = losses_and_inputs(regime, model, batch, monkeypatch)
    penalty = 5 * (clean["text"].vectors - 3).square().mean()
    assert_same(found, before + after + penalty)
    (gradient,) = torch.autograd.grad(before, clean["text"].vectors)
    gradient = gradient * clean["text"].mask[..., None]
    r = moved["text"].vectors - clean["text"].vectors
    torch.testing.assert_close(torch.cosine_similarity(r.flatten(1), gradient.flatten(1)), torch.ones(3))


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


def test_no_gradient_flows_through_the_move(monkeypatch):
    """The move is a constant for the parameters: their gradients are those of a loss that is given
    it."""
    regime = AdversarialTraining(epsilon=2.0)
    model, batch = prepared(regime)
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
    model, batch = prepared(regime)
    assert_same(loss_of(regime, model, batch), 2 * model.loss(batch))


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


def test_growing_the_word_vectors_does_not_make_a_move_smaller():
    """This is what the normalisation is for."""
    regime = AdversarialTraining(epsilon=1.0)
    model, batch = prepared(regime)
    before = loss_of(regime, model, batch)
    with torch.no_grad():
        model.table.table.tuned.weight.mul_(100)
    torch.testing.assert_close(loss_of(regime, model, batch), before, rtol=1e-3, atol=0)


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
