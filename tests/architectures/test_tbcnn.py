"""The mechanism of the tree-based CNN: a window of a node and its two children, and the maximum
over all windows of a tree."""

from __future__ import annotations

import torch
from torch import Tensor

from architectures.convolutional.tbcnn import TreeConvolution
from harness.views.tree import parse
from tests.support.models import small
from tests.support.pairs import dense, inputs_of, share_of_zeros
from tests.support.same import assert_same
from tests.support.trees import TREES, VECTORS, WIDTH, WORDS, node_by_node, trees_of

DETECTORS = 6


def model_of(**settings) -> TreeConvolution:
    """Weights of about 1, so that neither tanh nor the maximum hides a part of a window."""
    return small(TreeConvolution, WIDTH, **{"detectors": DETECTORS, "hidden": 4, "stretch": 2.0} | settings)


def windows(model: TreeConvolution, tree: str) -> list[Tensor]:
    """What the detectors find in the window of each node of a tree, one window after the other."""
    parts, words = parse(tree), iter(parse(tree).words)
    w_left, w_right = model.of_children.weight.split(WIDTH, dim=1)
    vectors: list[Tensor] = []
    found = []
    for left, right in zip(parts.left, parts.right, strict=True):
        if left < 0:
            vectors.append(VECTORS[WORDS.index(next(words))])
            below = torch.zeros(DETECTORS)
        else:
            a, b = vectors[left], vectors[right]
            vectors.append(torch.tanh(dense(model.composition, torch.cat([a, b]))))
            below = w_left @ a + w_right @ b
        found.append(torch.tanh(dense(model.of_node, vectors[-1]) + below))
    return found


def nodes_below(tree: str) -> list[list[int]]:
    """The nodes of each node's phrase, itself among them."""
    parts = parse(tree)
    below: list[list[int]] = []
    for node, (left, right) in enumerate(zip(parts.left, parts.right, strict=True)):
        below.append([node] if left < 0 else [*below[left], *below[right], node])
    return below


def phrases(model: TreeConvolution, tree: str) -> list[Tensor]:
    found = windows(model, tree)
    states = []
    for phrase in nodes_below(tree):
        pooled = torch.stack([max(found[node][k] for node in phrase) for k in range(DETECTORS)])
        states.append(torch.tanh(dense(model.hidden, pooled)))
    return states


def test_every_phrase_is_the_maximum_over_the_windows_below_it():
    """A window that lacks its node, or takes one child for the other, a phrase that sees its
    surroundings, or a sum over windows would show here."""
    model = model_of()
    assert_same(model.nodes(trees_of(*TREES)), torch.stack([state for tree in TREES for state in phrases(model, tree)]))
    assert_same(model(trees_of(*TREES)), torch.stack([phrases(model, tree)[-1] for tree in TREES]))


def test_the_vector_of_an_inner_node_is_the_recursive_networks():
    """The windows read vectors that a recursive network makes, which has no part in the
    maximum."""
    model = model_of()
    trees = trees_of(*TREES)
    seen = inputs_of(model.of_node)[0]
    model.nodes(trees)

    def parent(a: Tensor, b: Tensor) -> Tensor:
        return torch.tanh(dense(model.composition, torch.cat([a, b])))

    vectors = [v for tree in TREES for v in node_by_node(tree, lambda word: word, parent)]
    order = torch.cat([trees.leaf_nodes, *(level.parents for level in trees.levels)])
    assert_same(torch.cat(seen), torch.stack(vectors)[order])


def test_children_that_change_places_with_their_matrices_change_nothing():
    """What a child adds depends on the matrix of its side alone."""
    model, mirrored = model_of(), model_of()
    with torch.no_grad():
        for layer in (mirrored.composition, mirrored.of_children):
            layer.weight.copy_(torch.cat(layer.weight.split(WIDTH, dim=1)[::-1], dim=1))
    left, right = (model.leaf(torch.randn(5, WIDTH)) for _ in range(2))
    torch.testing.assert_close(model.parent(left, right), mirrored.parent(right, left))
    assert not torch.allclose(model.parent(left, right), model.parent(right, left), atol=1e-2)


def test_a_detector_by_hand():
    """Node 0.5 + 2 of the left child's first number - 3 of the right one's: the word's own window
    has tanh 0.5, the one above it tanh(0.5 + 2 * 1 - 3 * 0.1) = tanh 2.2."""
    model = TreeConvolution(1, detectors=1, hidden=1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.of_node.bias.fill_(0.5)
        model.of_children.weight.copy_(torch.tensor([[2.0, -3.0]]))
    children = model.leaf(torch.tensor([[1.0], [0.1]])).split(1)
    torch.testing.assert_close(model.parent(*children), torch.tensor([[0.0, 2.2]]).tanh())
    torch.testing.assert_close(model.parent(*children[::-1]), torch.tensor([[0.0, 0.5]]).tanh())


def test_dropout_acts_before_the_hidden_layer_and_behind_it():
    model = model_of().train()
    (seen,) = inputs_of(model.hidden)
    states = model.nodes(trees_of(*TREES * 20))
    assert 0.4 < share_of_zeros(seen) < 0.6
    assert 0.4 < share_of_zeros([states]) < 0.6
