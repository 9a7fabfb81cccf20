"""The mechanism of recursive networks: one composition of two children at each node, linear or with
a bilinear form for each number."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from architectures.recurrent.recursive_nn import RecursiveNetwork
from harness import registry
from harness.problems import problem
from harness.problems.classify import SENTIMENTS, ClassTarget
from harness.running.grid import hyperparameters
from harness.training.model import build
from harness.views.tree import Trees
from tests.support.models import small
from tests.support.same import assert_same
from tests.support.trees import TREES, VECTORS, WIDTH, node_by_node, trees_of

SIZE = 4


def model_of(**settings) -> RecursiveNetwork:
    """Small weights of the matrix, so that tanh is far from its ends."""
    model = small(RecursiveNetwork, WIDTH, size=SIZE, **settings)
    with torch.no_grad():
        model.matrix.weight.div_(6)
    return model


def recursion(model: RecursiveNetwork, tree: str) -> list[Tensor]:
    """Vectors of a tree's nodes, one after the other, by the equations of sections 4.1 and 4.3."""

    def parent(a: Tensor, b: Tensor) -> Tensor:
        both = torch.cat([a, b])
        sums = [row @ both + bias for row, bias in zip(model.matrix.weight, model.matrix.bias, strict=True)]
        if model.tensor is not None:
            forms = [sum(both[i] * form[i] @ both for i in range(2 * SIZE)) for form in model.tensor]
            sums = [linear + form for linear, form in zip(sums, forms, strict=True)]
        return torch.tanh(torch.stack(sums))

    return node_by_node(tree, lambda word: torch.tanh(model.project.weight @ word), parent)


@pytest.mark.parametrize("tensor", [False, True])
def test_trees_computed_level_by_level_are_each_tree_node_by_node(tensor):
    """Children in each other's place, or a form that reads one child alone, would show here."""
    model = model_of(tensor=tensor)
    assert (model.tensor is not None) == tensor
    assert_same(model.nodes(trees_of(*TREES)), torch.stack([p for tree in TREES for p in recursion(model, tree)]))
    assert_same(model(trees_of(*TREES)), torch.stack([recursion(model, tree)[-1] for tree in TREES]))


def test_a_tensor_of_zeros_is_the_plain_network():
    with_tensor, plain = model_of(tensor=True), model_of()
    with torch.no_grad():
        with_tensor.tensor.zero_()
    plain.load_state_dict(with_tensor.state_dict(), strict=False)
    torch.testing.assert_close(with_tensor.nodes(trees_of(*TREES)), plain.nodes(trees_of(*TREES)))


def test_a_level_is_one_step_for_the_whole_batch(monkeypatch):
    """Node by node is slower by orders."""
    model, steps = model_of(), []
    compute = model.parent
    monkeypatch.setattr(model, "parent", lambda left, right: steps.append(len(left)) or compute(left, right))
    model.nodes(trees_of(*TREES))
    assert steps == [4, 2, 1]


def test_a_node_starts_near_the_sum_of_its_children():
    """Two unit matrices side by side, and a weak tensor: what the authors' code starts from."""
    model = RecursiveNetwork(25, tensor=True)
    noise = model.matrix.weight.detach() - torch.eye(25).repeat(1, 2)
    assert 0.099 < noise.abs().max() <= 0.1 and not model.matrix.bias.any()
    assert model.tensor.shape == (25, 50, 50) and 0.0099 < model.tensor.abs().max() <= 0.01


def test_word_vectors_pass_a_matrix_only_where_their_size_differs():
    assert isinstance(RecursiveNetwork(25).project, nn.Identity)
    assert [p.shape for p in RecursiveNetwork(25).parameters()] == [(25, 50), (25,)]
    assert [p.shape for p in RecursiveNetwork(7).project.parameters()] == [(25, 7)]
    leaf = RecursiveNetwork(WIDTH, size=WIDTH)(trees_of("(2 fine)"))
    torch.testing.assert_close(leaf, torch.tanh(VECTORS[1:2]))


def test_training_has_a_loss_at_every_labelled_node_and_no_other():
    """The treebank's phrases are what these networks learn from; one node of the trees has no
    label."""
    brackets, target = ["(4 (2 a) (4 ( very) (3 fine)))", "(0 (1 not) (2 a))"], ClassTarget()
    view = Trees(min_count=1)
    view.fit(brackets)
    target.fit([{"label": label} for label in SENTIMENTS])
    model = build(RecursiveNetwork, problem("classify"), {"size": SIZE}, view, target, 6, torch.randn(view.width, 6))
    outputs = model({"text": view.collate(view.encode(brackets), np.arange(2))})
    names = [SENTIMENTS[label] for label in (2, 3, 4, 4, 1, 2, 0)]
    assert len(outputs[0]) == 8
    known = outputs[0].log_softmax(-1)[[0, 2, 3, 4, 5, 6, 7]]
    gold = torch.tensor([target.labels.index(name) for name in names])
    roots = torch.tensor([target.labels.index(SENTIMENTS[label]) for label in (4, 0)])
    expected = -known[torch.arange(7), gold].mean()
    assert_same(model.head.loss(model.encoder, outputs, roots), expected)


def test_each_id_has_the_composition_of_its_name():
    """Two ids of one network would be two rows with one model."""
    for id, tensor in {"recursive_nn": False, "rntn": True}.items():
        entry = registry.entry("architectures", id)
        model = registry.load(entry)(25, **hyperparameters(entry))
        assert (model.tensor is not None) == tensor, id
