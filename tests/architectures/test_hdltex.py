"""The mechanism of HDLTex: the predicted parent decides which child model answers, and a child
model learns from the texts of its own parent alone."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor

from architectures.hybrid.hdltex import FAR, HDLTex, HDLTexCNN
from harness import registry
from harness.label_tree import LabelTree
from harness.metrics import score
from tests.support.batches import assert_each_alone, random_texts
from tests.support.models import small
from tests.support.oracles import convolution, gru, linear
from tests.support.same import assert_same

WIDTH = 4
LABELS = ["cars", "chess", "hockey", "poems", "radio", "space"]
TREE = {"cars": "sport", "hockey": "sport", "radio": "science", "space": "science", "chess": "games"}
FAMILIES = {"poems": ["poems"], "games": ["chess"], "science": ["radio", "space"], "sport": ["cars", "hockey"]}
"""Parents in their order, with their children; poems has no parent and stands alone."""

texts = partial(random_texts, seed=1, width=WIDTH)


def model_of(kind: type[HDLTex] = HDLTex, **settings) -> HDLTex:
    sizes = {"hidden": 5} if kind is HDLTex else {"maps": 3, "window": 2, "pooled": 2, "hidden": 5}
    return small(kind, WIDTH, len(LABELS), LabelTree(LABELS, TREE), **sizes | settings)


def recurrent(model, vectors: Tensor) -> Tensor:
    return linear(model.output, gru(model.recurrence.forwards[0], vectors)[-1])


def convolutional(model, vectors: Tensor) -> Tensor:
    """Windows, then the maximum of every two, twice; then the maximum of all."""
    states = vectors
    for number, layer in enumerate(model.convolutions):
        short = max(0, layer.kernel_size[0] - len(states))
        maps = torch.stack(convolution(layer, states, right=short)).clamp(min=0)
        states = torch.stack([part.amax(0) for part in maps.split(2)]) if number < 2 else maps.amax(0)
    return linear(model.output, linear(model.hidden, states).clamp(min=0))


def joint(model: HDLTex, network, vectors: Tensor) -> dict[str, Tensor]:
    """Log-probability of each class of one text: that of its parent and that among its siblings."""
    found = {}
    for number, (log, children) in enumerate(
        zip(network(model.above, vectors).log_softmax(0), FAMILIES.values(), strict=True)
    ):
        among = network(model.below[str(number)], vectors).log_softmax(0) if len(children) > 1 else [0.0]
        found |= {child: log + each for child, each in zip(children, among, strict=True)}
    return found


KINDS = pytest.mark.parametrize(("kind", "network"), [(HDLTex, recurrent), (HDLTexCNN, convolutional)])


@KINDS
def test_a_class_is_as_probable_as_its_parent_times_itself_among_its_siblings(kind, network):
    """Classes in the order of the task, whatever the order of the parents."""
    model, batch = model_of(kind, **({"dropout": 0.0} if kind is HDLTex else {})).train(), texts((25, 12, 4, 1))

    def scores(vectors: Tensor) -> Tensor:
        found = joint(model, network, vectors)
        return torch.stack([found[label] for label in LABELS])

    found = model(batch)
    assert_each_alone(found, scores, batch, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found.exp().sum(1), torch.ones(4))
    labels = torch.tensor([0, 3, 5, 1])
    expected = -torch.stack([row[label] for row, label in zip(found, labels, strict=True)]).mean()
    assert_same(model.objective(found, labels), expected)


@KINDS
def test_the_predicted_parent_decides_which_child_model_is_asked(kind, network):
    """A class of another parent is not said, even where it is the most probable of all: there the
    best class of all and the best class of the best parent are two."""
    model, batch = model_of(kind), texts([6] * 200)
    with torch.no_grad():
        model.above.output.weight.mul_(0.1)  # parents that are nearly as probable as each other
        model.above.output.bias.copy_(torch.tensor([0.0, 0.0, 0.3, 0.3]))
    found, seen = model(batch), 0
    for row, vectors in zip(found, batch.vectors, strict=True):
        probable = joint(model, network, vectors)
        parent = list(FAMILIES)[int(network(model.above, vectors).argmax())]
        expected = max(FAMILIES[parent], key=lambda label, by=probable: float(by[label].detach()))
        assert LABELS[int(row.argmax())] == expected
        for label, value in zip(LABELS, row, strict=True):
            far = 0.0 if label in FAMILIES[parent] else FAR
            torch.testing.assert_close(value, probable[label] - far, rtol=1e-4, atol=1e-4)
        seen += expected != max(probable, key=lambda label, by=probable: float(by[label].detach()))
    assert seen > 0, "no text of the batch tells the two rules apart"


def test_a_wrong_parent_makes_the_child_wrong_and_the_right_one_does_not_help_it():
    """The score of a system that is told the right parent is an upper bound, not a result."""
    model, batch = model_of(), texts([5] * 4)
    with torch.no_grad():
        model.above.output.weight.zero_()
        model.above.output.bias.copy_(torch.tensor([0.0, 0.0, 9.0, 0.0]))
    predicted = [LABELS[int(row.argmax())] for row in model(batch)]
    assert {*predicted} <= {*FAMILIES["science"]}
    rows = [{"label": label} for label in ("cars", "hockey", "cars", "poems")]
    assert score(["accuracy", "hierarchical_f1"], predicted, rows, TREE) == {"accuracy": 0, "hierarchical_f1": 0}


@KINDS
def test_a_child_model_learns_from_the_texts_of_its_parent_alone(kind, network):
    """Not by a rounding error: an optimiser that scales gradients makes steps of those."""
    model, batch = model_of(kind).train(), texts((7, 5, 6))
    model.objective(
        model(batch), torch.tensor([LABELS.index(label) for label in ("cars", "poems", "hockey")])
    ).backward()
    assert all(parameter.grad.any() for parameter in model.above.parameters())
    sport, science = (model.below[str(list(FAMILIES).index(name))] for name in ("sport", "science"))
    assert all(parameter.grad.any() for parameter in sport.parameters())
    assert not any(parameter.grad.any() for parameter in science.parameters())


@KINDS
def test_only_a_parent_with_several_children_has_a_model_and_none_shares_weights(kind, network):
    model = model_of(kind)
    assert [model.below[name].output.out_features for name in model.below] == [2, 2]
    assert sorted(model.below) == ["2", "3"] and model.above.output.out_features == 4
    parameters = [*model.above.parameters(), *model.below.parameters()]
    assert len({id(each) for each in parameters}) == len(list(model.parameters()))


def test_the_sizes_of_the_authors_code():
    tree = LabelTree(LABELS, TREE)
    one, other = HDLTex(100, 6, tree), HDLTexCNN(100, 6, tree)
    for model in (one.above, *one.below.values()):
        assert model.recurrence.forwards[0].weight_hh_l0.shape == (300, 100) and model.dropout.p == 0.2
    for model in (other.above, *other.below.values()):
        assert [layer.weight.shape for layer in model.convolutions] == [(256, 100, 5), (256, 256, 5), (256, 256, 5)]
        assert model.sizes == (5, 5, None) and model.hidden.weight.shape == (256, 256)
    assert registry.load(registry.entry("architectures", "hdltex_cnn")) is HDLTexCNN


def test_a_fifth_of_the_numbers_that_a_model_reads_are_dropped_in_training():
    model = model_of(HDLTex, dropout=0.2).train()
    read = []
    for each in (model.above, *model.below.values()):
        each.recurrence.register_forward_pre_hook(lambda module, inputs: read.append(inputs[0]))
    model(texts([100] * 8))
    assert len(read) == 3
    for numbers in read:
        assert 0.15 < (numbers == 0).float().mean() < 0.25
    assert not torch.equal(read[0] == 0, read[1] == 0)


def test_tasks_without_a_label_tree_are_refused():
    task = registry.entry("tasks", "ag_news")
    assert HDLTex.reason_to_skip(task, {}) == "needs a tree over the labels, and ag_news declares none"
