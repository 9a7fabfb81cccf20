"""Capsule layers against the paper's algorithm written out with loops over children and parents."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from architectures.blocks.capsules import (
    CapsuleColumn,
    ConvolutionalCapsules,
    PrimaryCapsules,
    Routing,
    leaky_softmax,
    separate_margin_loss,
    squash,
)
from tests.support.same import assert_same

LENGTHS = [9, 4, 2, 1]


def squashed(vector: Tensor) -> Tensor:
    """|s|^2 / (0.5 + |s|^2) * s / |s| of one vector."""
    length = vector.norm()
    return length**2 / (0.5 + length**2) * vector / length


def routed(routing: Routing, children: Tensor, iterations: int = 3) -> Tensor:
    """Parents (J, size) of children (I, size): every vote, coefficient and agreement one by one."""
    count, parents = len(children), len(routing.bias)
    votes = [[routing.transformations[j] @ u + routing.bias[j] for j in range(parents)] for u in children]
    logits = [[torch.tensor(0.0)] * parents for _ in range(count)]
    for _ in range(iterations):
        sums = [torch.zeros(children.shape[1]) for _ in range(parents)]
        for i in range(count):
            total = 1 + sum(logit.exp() for logit in logits[i])  # the leak's logit is 0
            for j in range(parents):
                sums[j] = sums[j] + children[i].norm() * logits[i][j].exp() / total * votes[i][j]
        outputs = [squashed(s) for s in sums]
        logits = [[logits[i][j] + outputs[j] @ votes[i][j] for j in range(parents)] for i in range(count)]
    return torch.stack(outputs)


def routing_of(size: int = 4, parents: int = 3, iterations: int = 3) -> Routing:
    """A routing layer with matrices and biases large enough to move the coefficients."""
    torch.manual_seed(0)
    routing = Routing(size, parents, children=5, iterations=iterations)
    torch.nn.init.normal_(routing.transformations)
    torch.nn.init.normal_(routing.bias)
    return routing


def capsules_of(*shape: int) -> Tensor:
    torch.manual_seed(1)
    return squash(torch.randn(*shape))


def test_squash_keeps_the_direction_and_brings_the_length_below_one():
    vectors = torch.tensor([[math.sqrt(0.5), 0.0], [3.0, 4.0], [-300.0, 400.0]])
    found = squash(vectors)
    torch.testing.assert_close(found[0], torch.tensor([0.5, 0.0]))  # |s|^2 = 0.5 is the half-way point
    torch.testing.assert_close(found[1], torch.tensor([0.6, 0.8]) * 25 / 25.5)
    assert 0.99 < found[2].norm() < 1


def test_a_capsule_that_is_not_there_has_length_zero_and_a_finite_gradient():
    """Padding is capsules of zeros: a NaN in their gradient would reach every weight."""
    vector = torch.zeros(1, 3, requires_grad=True)
    squashed_zero = squash(vector)
    routing_of(size=3)(squashed_zero).sum().backward()
    assert not squashed_zero.any() and vector.grad.isfinite().all()


def test_leaky_softmax_shares_out_less_than_one_over_the_parents():
    logits = torch.tensor([[0.0, 0.0, 0.0], [math.log(2), math.log(3), -math.inf]])
    torch.testing.assert_close(leaky_softmax(logits), torch.tensor([[0.25, 0.25, 0.25], [2 / 6, 3 / 6, 0.0]]))


@pytest.mark.parametrize("iterations", [1, 2, 3])
def test_routing_is_the_papers_algorithm_vote_by_vote(iterations: int):
    """Also its gradient, which flows through the coefficients."""
    routing, children = routing_of(iterations=iterations), capsules_of(2, 5, 4).requires_grad_()
    expected = torch.stack([routed(routing, text, iterations) for text in children])
    found = routing(children)
    assert_same(found, expected)
    weights = torch.randn(found.shape)
    wanted = torch.autograd.grad((expected * weights).sum(), (children, *routing.parameters()))
    for gradient, one in zip(
        torch.autograd.grad((found * weights).sum(), (children, *routing.parameters())), wanted, strict=True
    ):
        torch.testing.assert_close(gradient, one, atol=1e-5, rtol=1e-4)


def test_routing_moves_towards_the_parent_on_which_the_children_agree():
    """Without agreement three rounds would give what one gives."""
    children = 0.9 * torch.tensor([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [-0.6, 0.8]])
    after = {}
    for iterations in (1, 3):
        routing = Routing(2, 2, children=4, iterations=iterations)
        with torch.no_grad():
            routing.transformations[0] = torch.eye(2)  # three children vote alike, the fourth against them
            routing.transformations[1] = 0.1 * torch.eye(2)
        after[iterations] = routing(children)
    assert after[3][0].norm() > after[1][0].norm()
    assert after[3][0, 1].abs() / after[3][0].norm() < after[1][0, 1].abs() / after[1][0].norm()


def test_parents_with_the_same_votes_stay_the_same():
    routing = routing_of(parents=2)
    with torch.no_grad():
        routing.transformations[1], routing.bias[1] = routing.transformations[0], routing.bias[0]
    first, second = routing(capsules_of(6, 4))
    torch.testing.assert_close(first, second)


def test_a_childs_vote_counts_by_the_probability_that_it_is_there():
    """The amendment of the coefficients: without it the bias of an absent child's vote would count
    in full."""
    routing, children = routing_of(), capsules_of(5, 4)
    torch.testing.assert_close(routing(torch.cat([children, torch.zeros(7, 4)])), routing(children))


def test_routing_without_a_round_is_refused():
    with pytest.raises(ValueError, match="iterations is 0"):
        Routing(4, 2, children=3, iterations=0)


def test_primary_capsules_are_squashed_filters_of_one_position():
    torch.manual_seed(0)
    layer, features = PrimaryCapsules(maps=5, capsules=3, size=2), torch.randn(2, 4, 5)
    found = layer(features)
    assert found.shape == (2, 4, 3, 2)
    weight, bias = layer.filters.weight.view(3, 2, 5), layer.filters.bias.view(3, 2)
    assert_same(found[1, 2, 1], squashed(weight[1] @ features[1, 2] + bias[1]))


def test_convolutional_capsules_hear_from_their_window_alone():
    torch.manual_seed(0)
    layer, children = ConvolutionalCapsules(size=4, children=2, capsules=3, window=3), capsules_of(2, 6, 2, 4)
    found = layer(children)
    assert found.shape == (2, 4, 3, 4)
    for text in range(2):
        for start in range(4):
            assert_same(found[text, start], routed(layer.routing, children[text, start : start + 3].flatten(0, 1)))


def column_of() -> CapsuleColumn:
    torch.manual_seed(0)
    column = CapsuleColumn(width=3, classes=2, ngram=3, maps=6, primary=2, capsules=3, size=4, window=3, iterations=3)
    for parameter in column.parameters():
        torch.nn.init.normal_(parameter)
    return column


def test_a_column_gives_every_text_what_it_gives_it_alone():
    """Beside longer texts, with noise at padding, and shorter than a window; every layer written
    out."""
    column = column_of()
    torch.manual_seed(1)
    vectors, mask = torch.randn(len(LENGTHS), 9, 3), torch.arange(9) < torch.tensor(LENGTHS)[:, None]
    found = column(vectors, mask)
    assert found.shape == (len(LENGTHS), 3, 4)
    filters = column.primary.filters
    for text, length in enumerate(LENGTHS):
        words = [*vectors[text, :length], *[torch.zeros(3)] * (3 - length)]
        grams = [torch.stack(words[t : t + 3], dim=1) for t in range(len(words) - 2)]
        maps = [torch.relu((column.ngrams.weight * gram).sum((1, 2)) + column.ngrams.bias) for gram in grams]
        primary = [squash((filters.weight @ m + filters.bias).view(2, 4)) for m in maps]
        starts = range(max(1, len(primary) - 2))
        parents = [routed(column.convolutional.routing, torch.cat(primary[t : t + 3])) for t in starts]
        assert_same(found[text], routed(column.classes, torch.cat(parents)), atol=1e-5, rtol=1e-4)


def test_capsules_start_neither_absent_nor_certain():
    """Squashing three times over would leave nothing to learn from: with a common initialisation
    class capsules start at 1e-4."""
    torch.manual_seed(0)
    column = CapsuleColumn(
        width=100, classes=2, ngram=3, maps=32, primary=16, capsules=16, size=16, window=3, iterations=3
    )
    lengths = {}
    for name in ("primary", "convolutional", "classes"):
        getattr(column, name).register_forward_hook(
            lambda layer, i, o, name=name: lengths.update({name: o.norm(dim=-1).mean().item()})
        )
    for words in (20, 50):
        column(torch.empty(8, words, 100).uniform_(-0.25, 0.25), torch.ones(8, words, dtype=torch.bool))
        assert all(0.1 < length < 0.9 for length in lengths.values()), (words, lengths)


def test_the_margin_loss_of_a_hand_worked_text():
    lengths = torch.tensor([[0.7, 0.3, 0.05], [0.95, 0.0, 0.6]])
    expected = [(0.9 - 0.7) ** 2 + 0.5 * (0.3 - 0.1) ** 2, 0.9**2 + 0.5 * (0.95 - 0.1) ** 2 + 0.5 * (0.6 - 0.1) ** 2]
    assert separate_margin_loss(lengths, torch.tensor([0, 1])).item() == pytest.approx(sum(expected) / 2)
