"""Random walks over a taxonomy, and vectors of labels from them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from architectures.blocks.label_walks import label_cosines, pairs_within, random_walks, skip_gram, taxonomy
from harness.label_tree import LabelTree
from tests.support.oracles import cosine

LABELS = ["a.x", "a.y", "b.u", "b.v", "c"]
TREE = LabelTree(LABELS, {"a.x": "a", "a.y": "a", "b.u": "b", "b.v": "b"})


def test_the_taxonomy_has_a_root_above_all_that_have_no_parent():
    """The labels are 0 to 4, a and b are 5 and 6, and 7 is the root."""
    assert taxonomy(TREE) == [[5], [5], [6], [6], [7], [0, 1, 7], [2, 3, 7], [4, 5, 6]]
    deep = LabelTree(["x", "a.x", "a"], {"x": "a.x", "a.x": "a"})
    assert taxonomy(deep) == [[1], [0, 2], [1, 3], [2]], "a label hangs on its nearest ancestor alone"


def test_walks_begin_at_each_node_and_go_on_to_any_neighbour_alike():
    neighbours = taxonomy(LabelTree([*LABELS, "d"], TREE.parents))
    assert sorted(map(len, neighbours)) == [1] * 6 + [3, 3, 4]
    walks = random_walks(neighbours, 300, 4, np.random.default_rng(1))
    assert walks.shape == (2700, 5) and np.bincount(walks[:, 0]).tolist() == [300] * 9
    went = np.zeros((9, 9))
    np.add.at(went, (walks[:, :-1], walks[:, 1:]), 1)
    for node, around in enumerate(neighbours):
        shares = went[node] / went[node].sum()
        expected = np.zeros(9)
        expected[around] = 1 / len(around)
        np.testing.assert_allclose(shares, expected, atol=0.05)
        assert (shares[expected == 0] == 0).all(), "a walk left the tree"


def test_pairs_by_hand():
    """Both ways, each pair of places once; a node that is met again is around itself."""
    found = pairs_within(np.array([[0, 1, 0, 2]]), 2, 4)
    # apart 1: 01, 10, 02; apart 2: 00, 12
    expected = np.zeros((4, 4))
    expected[0, 1] = expected[1, 0] = 2
    expected[0, 2] = expected[2, 0] = 1
    expected[0, 0] = 2
    expected[1, 2] = expected[2, 1] = 1
    np.testing.assert_array_equal(found, expected)


def test_skip_gram_goes_down_the_cross_entropy_of_what_is_around():
    """Against the gradient of torch. The vector that is foretold takes the mean over its pairs:
    here by the share of each node's pairs that have it."""
    counts = np.array([[0.0, 3, 1], [2, 2, 0], [1, 3, 4]])
    found = skip_gram(counts, 2, 5, 0.3, np.random.default_rng(3))
    start = torch.tensor(np.random.default_rng(3).normal(scale=0.1, size=(2, 3, 2)))
    inner, outer = start[0].requires_grad_(), start[1].requires_grad_()
    shares = torch.tensor(counts / counts.sum(1, keepdims=True))
    for _ in range(5):
        loss = sum(F.cross_entropy(outer @ inner[node], shares[node]) for node in range(3))
        down = torch.autograd.grad(loss, [inner, outer])
        weights = torch.stack([shares[:, node].sum() for node in range(3)])
        inner = (inner - 0.3 * down[0]).detach().requires_grad_()
        outer = (outer - 0.3 * down[1] / weights[:, None]).detach().requires_grad_()
    np.testing.assert_allclose(found, inner.detach().numpy(), rtol=1e-9)


def test_a_sibling_is_nearer_than_any_label_of_another_branch():
    cosines = label_cosines(TREE)
    assert cosines.shape == (5, 5) and cosines.dtype == torch.float32, "labels above have no row"
    torch.testing.assert_close(cosines.diagonal(), torch.ones(5))
    torch.testing.assert_close(cosines, cosines.T)
    assert cosines.abs().max() < 1 + 1e-5
    for one, two in ((0, 1), (2, 3)):
        far = [cosines[label, other] for label in (one, two) for other in range(5) if other not in (one, two)]
        assert cosines[one, two] > 0.9 and max(far) < 0.6


def test_the_cosines_are_those_of_learnt_vectors():
    """As many walks, steps, pairs and epochs as are said; labels stand first among the nodes."""
    rng = np.random.default_rng(0)
    counts = pairs_within(random_walks(taxonomy(TREE), 100, 20, rng), 3, 8)
    vectors = torch.tensor(skip_gram(counts, 16, 500, 0.1, rng))
    expected = torch.tensor([[cosine(vectors[one], vectors[two]) for two in range(5)] for one in range(5)])
    torch.testing.assert_close(label_cosines(TREE), expected.float())


def test_labels_of_several_levels_are_the_farther_the_longer_the_way():
    """A tree of three levels: a sibling, a cousin, another branch."""
    labels = [f"{top}.{middle}.{leaf}" for top in "ab" for middle in "kl" for leaf in "xyz"]
    parents = {label: label[:3] for label in labels} | {label[:3]: label[0] for label in labels}
    cosines = label_cosines(LabelTree(labels, parents))
    sibling, cousin, far = cosines[0, 1:3].min(), cosines[0, 3:6], cosines[0, 6:]
    assert sibling > cousin.max() and cousin.mean() > far.max()


def test_without_a_tree_no_label_is_nearer_than_another():
    assert torch.equal(label_cosines(LabelTree(LABELS, {})), torch.zeros(5, 5))


def test_the_same_in_every_run_and_no_number_of_others_is_drawn():
    torch.manual_seed(5)
    np.random.seed(5)
    before = torch.get_rng_state(), np.random.get_state()[1].tolist()
    first = label_cosines(TREE)
    assert torch.equal(torch.get_rng_state(), before[0]) and np.random.get_state()[1].tolist() == before[1]
    torch.manual_seed(6)
    assert torch.equal(label_cosines(TREE), first)


@pytest.mark.parametrize("branches", [1, 30])
def test_many_labels_are_learnt_without_an_overflow(branches):
    """All of three hundred under one label: what is foretold by so many must not run away."""
    labels = [f"{number % branches}.{number}" for number in range(300)]
    with np.errstate(all="raise", under="ignore"):
        cosines = label_cosines(LabelTree(labels, {label: label.split(".")[0] for label in labels}))
    same = torch.tensor([[one.split(".")[0] == two.split(".")[0] for two in labels] for one in labels])
    assert cosines.isfinite().all() and cosines[same].mean() > 0.9
