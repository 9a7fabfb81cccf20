"""The mechanism of the graph-CNN: convolutions over sub-graphs, and rows of the last layer that
stay near those of the labels above."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from architectures.graph.graph_cnn import GraphCNN
from harness import registry
from harness.data.corpus import Corpus
from harness.label_tree import LabelTree
from harness.objectives import Supervised, collected_losses
from harness.problems import problem
from harness.training.model import build
from harness.views.words import WordBatch
from tests.support.batches import random_subgraphs
from tests.support.models import small
from tests.support.oracles import convolution, linear
from tests.support.same import assert_same

WIDTH, ROOTS, AROUND = 4, 3, 5
LABELS = ["a.x", "a.y", "b"]
TREE = LabelTree(LABELS, {"a.x": "a", "a.y": "a"})


def model_of(tree: LabelTree = TREE, **settings) -> GraphCNN:
    sizes = {"roots": ROOTS, "around": AROUND, "maps": (3, 4, 2), "windows": (3, 3, 1), "hidden": (6, 5)} | settings
    return small(GraphCNN, WIDTH, len(LABELS), tree, **sizes)


def batch_of(*sizes: list[int]) -> WordBatch:
    """Texts whose sub-graphs have these numbers of words."""
    return random_subgraphs(*sizes, around=AROUND, width=WIDTH)


def written_out(model: GraphCNN, graphs: list[Tensor]) -> Tensor:
    """The scores of one text with these sub-graphs (n, width): each is filled with zeros and
    convolved alone, and the roots stand one behind another."""
    found = []
    for words in graphs:
        states = torch.cat([words, torch.zeros(AROUND - len(words), WIDTH)])
        for number, layer in enumerate(model.convolutions):
            side = layer.kernel_size[0] // 2
            states = torch.stack(convolution(layer, states, left=side, right=side)).clamp(min=0)
            states = torch.stack([part.amax(0) for part in states.split(2)]) if number < 2 else states.amax(0)
        found.append(states)
    state = torch.cat([*found, torch.zeros(2 * (ROOTS - len(found)))])
    for layer in model.hidden:
        state = linear(layer, state).clamp(min=0)
    return linear(model.output, state)[: len(LABELS)]


def test_a_text_is_its_sub_graphs_in_the_order_of_their_roots():
    """A text with fewer roots than are asked for, alone or beside one that has them all."""
    model, sizes = model_of(), [[5, 4, 2], [3], [5, 1]]
    batch = batch_of(*sizes)
    expected = []
    for vectors, each in zip(batch.vectors.unflatten(1, (-1, AROUND)), sizes, strict=True):
        expected.append(written_out(model, [graph[:words] for graph, words in zip(vectors, each, strict=False)]))
    assert_same(model(batch), torch.stack(expected), rtol=1e-4, atol=1e-5)
    alone = batch_of(*sizes[1:])
    assert model(alone).shape == (2, 3), "no text of this batch has all roots"


def test_the_regulariser_is_zero_only_where_parent_and_child_rows_are_equal():
    """By hand, over the edges of the tree alone: a label that stands alone is near nobody."""
    model = model_of()
    rows = model.output.weight
    assert rows.shape == (4, 5), "the label above has a row"
    expected = ((rows[3] - rows[0]) ** 2).sum() / 2 + ((rows[3] - rows[1]) ** 2).sum() / 2
    assert_same(model.distance(), expected)
    assert model.distance() > 1e-3
    with torch.no_grad():
        rows[0] = rows[1] = rows[3]
    assert model.distance() == 0
    with torch.no_grad():
        rows[1, 2] += 0.1
    assert model.distance().item() == pytest.approx(0.005, rel=1e-3)


def test_training_adds_the_regulariser_with_its_weight_and_without_a_tree_nothing():
    entry = registry.entry("tasks", "newsgroups20")
    sizes = {"roots": ROOTS, "around": AROUND, "maps": (3, 4, 2), "hidden": (6, 5), "dropout": 0.0}
    view = GraphCNN.view_for(entry, sizes)
    corpus = Corpus(registry.load(entry)(entry), "mini", None, view, GraphCNN.output_form())
    batch = corpus.train.collate(np.arange(6))
    for weight in (0.0, 0.5):
        torch.manual_seed(0)
        settings = sizes | {"regularisation": weight}
        model = build(GraphCNN, problem("classify"), settings, view, corpus.target, 4)
        losses = Supervised().at(model, model.read(batch.inputs), batch.target)
        task = F.cross_entropy(model(batch.inputs), batch.target)
        assert_same(losses["loss"], task + weight * model.encoder.distance())
    flat = model_of(LabelTree(LABELS, {}))
    assert flat.output.out_features == 3 and flat(batch_of([2])).shape == (1, 3)


def test_sets_of_labels_have_a_cross_entropy_each_by_itself():
    scores = torch.randn(2, 3, generator=torch.Generator().manual_seed(0)).requires_grad_()
    gold = torch.tensor([[1.0, 0, 1], [0, 0, 0]])
    expected = -(gold * scores.sigmoid().log() + (1 - gold) * (1 - scores.sigmoid()).log()).sum(1)
    assert_same(model_of().set_losses(scores, gold), expected)
    assert GraphCNN.output_form() == "label scores"


def test_the_regulariser_stands_beside_a_mean_over_the_labels_of_a_set():
    """The loss is their sum, so that it counts once for each of them."""
    model, batch = model_of(regularisation=0.5), batch_of([5, 4, 2], [3])
    gold = torch.tensor([[1.0, 0, 1], [0, 0, 0]])
    with collected_losses() as terms:
        losses = model.set_losses(model(batch), gold)
    rows = model.output.weight
    distance = sum((rows[3] - rows[child]).square().sum() / 2 for child in (0, 1))
    mean = F.binary_cross_entropy_with_logits(model(batch), gold)
    assert_same(losses.mean() + sum(terms.values()), len(LABELS) * (mean + 0.5 * distance))


def test_half_of_the_hidden_numbers_are_dropped_in_training():
    model = model_of(hidden=(400, 400)).train()
    read = []
    for layer in (model.hidden[1], model.output):
        layer.register_forward_pre_hook(lambda module, inputs: read.append(inputs[0]))
    with torch.no_grad():
        for layer in model.hidden:
            layer.weight.abs_()
            layer.bias.fill_(9.0)
    model(batch_of([5, 4, 2]))
    assert len(read) == 2 and all(0.4 < (numbers == 0).float().mean() < 0.6 for numbers in read)


def test_sizes():
    model = GraphCNN(50, 3, TREE)
    assert [layer.weight.shape for layer in model.convolutions] == [(64, 50, 5), (96, 64, 3), (96, 96, 3)]
    assert [layer.weight.shape for layer in model.hidden] == [(1024, 96 * 96), (512, 1024)]
    assert (model.roots, model.around) == (96, 10)
    view = GraphCNN.view_for(registry.entry("tasks", "newsgroups20"), {"roots": 7, "around": 3})
    assert (view.roots, view.around, view.reach) == (7, 3, 2)
