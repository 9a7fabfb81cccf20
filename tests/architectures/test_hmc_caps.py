"""A capsule for each label of both levels, the margin loss of sets, and the correction of sets by
the label tree."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor

from architectures.capsule.hmc_caps import HierarchicalCapsules
from harness import registry
from harness.label_tree import LabelTree
from tests.architectures.test_capsnet import routed, squashed
from tests.support.batches import assert_each_alone, random_texts
from tests.support.models import small
from tests.support.oracles import convolution
from tests.support.same import assert_same

WIDTH, TYPES, SIZE = 4, 2, 3
LABELS = ["a", "a.b", "a.b.c", "d", "d.e"]
TREE = LabelTree(LABELS, {"a.b.c": "a.b", "a.b": "a", "d.e": "d"})

texts = partial(random_texts, seed=1, width=WIDTH)


def model_of(tree: LabelTree = TREE, **settings) -> HierarchicalCapsules:
    sizes = {"types": TYPES, "window": 3, "size": SIZE, "label_size": 4} | settings
    return small(HierarchicalCapsules, WIDTH, len(LABELS), tree, stretch=2.0, **sizes)


@pytest.mark.parametrize("iterations", [1, 3])
def test_a_text_has_the_lengths_of_its_routed_label_capsules(iterations):
    """One capsule for each label of every level; what the convolution gives is rectified, and
    padding does not vote. The last texts are shorter than a window."""
    model, batch = model_of(iterations=iterations), texts((8, 4, 2, 1))

    def lengths(vectors: Tensor) -> Tensor:
        votes = []
        for features in convolution(model.primary, vectors, right=max(0, 3 - len(vectors))):
            for type, child in enumerate(features.clamp(min=0).split(SIZE)):
                votes.append([w @ squashed(child) for w in model.routing.transformations[type]])
        return torch.stack([(v * v).sum().sqrt() for v in routed(votes, iterations)])

    assert_each_alone(model(batch), lengths, batch, rtol=1e-4, atol=1e-5)


def test_each_label_has_a_capsule_of_its_own():
    model, batch = model_of(), texts([6])
    before = model(batch)
    with torch.no_grad():
        model.routing.transformations[:, 2] = 0
    after = model(batch)
    assert after[0, 2] == 0 and (after[0, [0, 1, 3, 4]] > 0).all() and (before > 0).all()


def test_the_margin_loss_of_a_set_by_hand():
    """What is there should be longer than .9, what is not shorter than .1, at half the weight."""
    lengths = torch.tensor([[0.95, 0.4, 0.3, 0.05, 0.0], [0.2, 0.0, 0.0, 0.9, 0.6]], requires_grad=True)
    labels = torch.tensor([[1.0, 1, 0, 0, 0], [0, 0, 0, 1, 1]])
    found = model_of().set_losses(lengths, labels)
    torch.testing.assert_close(found, torch.tensor([0.5**2 + 0.5 * 0.2**2, 0.5 * 0.1**2 + 0.3**2]))
    here, absent = (0.9 - lengths).clamp(min=0) ** 2, 0.5 * (lengths - 0.1).clamp(min=0) ** 2
    assert_same(found, torch.where(labels == 1, here, absent).sum(1))


NAMES = ("transitive", "restrictive", "semi_transitive")


def unchanged(*lengths: float) -> tuple[list[float], dict[str, list[float]]]:
    return list(lengths), {name: list(lengths) for name in NAMES}


CASES = [
    unchanged(0.2, 0.1, 0.9, 0.1, 0.1),  # one label alone, whatever is above it
    unchanged(0.6, 0.7, 0.8, 0.9, 0.1),  # whole paths
    # a child without its parent beside another root: the parent is added, or the child goes
    (
        [0.7, 0.1, 0.1, 0.4, 0.8],
        {
            "transitive": [0.7, 0.1, 0.1, 0.8, 0.8],
            "restrictive": [0.7, 0.1, 0.1, 0.4, 0.4],
            "semi_transitive": [0.7, 0.1, 0.1, 0.4, 0.4],
        },
    ),
    # the middle of a path is missing and its root is said: this is where the last two differ
    (
        [0.7, 0.3, 0.9, 0.1, 0.1],
        {
            "transitive": [0.9, 0.9, 0.9, 0.1, 0.1],
            "restrictive": [0.7, 0.3, 0.3, 0.1, 0.1],
            "semi_transitive": [0.9, 0.9, 0.9, 0.1, 0.1],
        },
    ),
    # the root is missing under a said middle: both of the path go, or the root comes
    (
        [0.4, 0.6, 0.8, 0.1, 0.1],
        {
            "transitive": [0.8, 0.8, 0.8, 0.1, 0.1],
            "restrictive": [0.4, 0.4, 0.4, 0.1, 0.1],
            "semi_transitive": [0.4, 0.4, 0.4, 0.1, 0.1],
        },
    ),
]


@pytest.mark.parametrize("correction", NAMES)
def test_corrections_by_hand(correction):
    """In one batch, so that no text is corrected by what another says."""
    model = model_of(correction=correction)
    given = torch.tensor([lengths for lengths, _ in CASES])
    found = model.set_probabilities(given)
    torch.testing.assert_close(found, torch.tensor([wanted[correction] for _, wanted in CASES]))
    torch.testing.assert_close(given, torch.tensor([lengths for lengths, _ in CASES]), msg="the lengths are kept")


@pytest.mark.parametrize("correction", NAMES)
def test_a_corrected_label_is_no_more_probable_than_what_it_is_part_of(correction):
    """Others may be: those whose ancestors are all said, and those of a text that says one."""
    model, lengths = model_of(correction=correction), torch.rand(400, 5, generator=torch.Generator().manual_seed(0))
    found, corrected, left = model.set_probabilities(lengths), 0, 0
    for before, after in zip(lengths.tolist(), found.tolist(), strict=True):
        said = [p > 0.5 for p in before]
        for label, above in ((1, [0]), (2, [1, 0]), (4, [3])):
            wrong = said[label] and not all(said[a] for a in above) and sum(said) > 1
            corrected += wrong
            left += not wrong and after[label] > min(after[a] for a in above)
            assert not wrong or after[label] <= min(after[a] for a in above)
        if sum(said) < 2:
            assert after == before
    assert corrected > 50 and left > 50


def test_without_a_tree_nothing_is_corrected_and_an_ancestor_without_a_capsule_is_none():
    lengths = torch.rand(50, 5, generator=torch.Generator().manual_seed(0))
    assert torch.equal(model_of(LabelTree(LABELS, {})).set_probabilities(lengths), lengths)
    beyond = LabelTree(LABELS, {"a": "all", "d": "all"})
    assert torch.equal(model_of(beyond, correction="restrictive").set_probabilities(lengths), lengths)


def test_an_unknown_correction_is_named():
    with pytest.raises(ValueError, match="correction='none' is none of transitive, restrictive, semi_transitive"):
        model_of(correction="none")


def test_no_rounds_of_routing_are_refused():
    with pytest.raises(ValueError, match="iterations is 0: routing takes at least one"):
        model_of(iterations=0)


def test_the_papers_sizes_and_start():
    model = HierarchicalCapsules(300, 5, TREE)
    assert model.primary.weight.shape == (55 * 8, 300, 50) and model.view.max_length == 100
    assert model.routing.transformations.shape == (55, 5, 16, 8) and model.routing.iterations == 3
    assert model.correction == "transitive"


def test_it_says_sets_of_labels_and_nothing_else():
    """A text with one label has no set to correct."""
    assert HierarchicalCapsules.can_answer("multilabel") and not HierarchicalCapsules.can_answer("classify")
    entry = registry.entry("tasks", "reuters21578")
    assert HierarchicalCapsules.reason_to_skip(entry, {}) is None
