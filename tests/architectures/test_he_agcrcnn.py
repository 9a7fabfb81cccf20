"""The mechanism of the graph capsules: recurrent convolutions over sub-graphs, attention over their
roots, routing to a capsule for each label, and a margin loss over a taxonomy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from architectures.blocks.capsules import separate_margin_loss, set_margin_losses
from architectures.blocks.word_subgraphs import SubgraphsInOrder
from architectures.graph.he_agcrcnn import GraphCapsules
from harness import registry
from harness.data.corpus import Corpus
from harness.label_tree import LabelTree
from harness.objectives import Supervised
from harness.problems import problem
from harness.training.model import build
from harness.views.words import WordBatch
from tests.architectures.test_capsnet import routed, squashed
from tests.support.batches import random_subgraphs
from tests.support.models import small
from tests.support.oracles import convolution, linear, lstm, softmax_mean
from tests.support.same import assert_same

WIDTH, AROUND, SIZE = 4, 9, 3
"""With windows of three, nine words have seven places, of which capsules have two."""
LABELS = ["a.x", "a.y", "b.u", "b.v", "b.w"]
TREE = LabelTree(LABELS, {label: label[0] for label in LABELS})
SMALL = {"roots": 12, "around": AROUND, "word_maps": 5, "hidden": 6, "maps": 7, "window": 3}
SMALL |= {"types": 2, "size": SIZE, "label_size": 4}


def model_of(tree: LabelTree = TREE, **settings) -> GraphCapsules:
    return small(GraphCapsules, WIDTH, len(LABELS), tree, stretch=2.0, **SMALL | settings)


def batch_of(*sizes: list[int]) -> WordBatch:
    """Texts whose sub-graphs have these numbers of words."""
    return random_subgraphs(*sizes, around=AROUND, width=WIDTH)


def row_of(model: GraphCapsules, roots: list[Tensor]) -> Tensor:
    """The states of one or two neighbouring roots, by their words (n, width) in their order."""
    maps = [torch.stack(convolution(model.words, words, right=AROUND - len(words))).clamp(min=0) for words in roots]
    states = lstm(model.order, torch.stack(maps).amax(0))
    apart = [state - state.sum() / len(state) for state in states]
    return torch.stack([each / ((each * each).sum() / len(each) + 1e-5).sqrt() for each in apart])


def attended_rows(model: GraphCapsules, rows: list[Tensor]) -> list[Tensor]:
    """Each row times the attention to its last state and the number of rows."""
    layer = model.attention
    scores = [layer.context @ torch.tanh(linear(layer.hidden, row[-1])) for row in rows]
    shares = softmax_mean(scores, torch.eye(len(rows)))
    return [row * share * len(rows) for row, share in zip(rows, shares, strict=True)]


def windows_of(layer: torch.nn.Conv2d, rows: list[Tensor], step: int = 1) -> list[Tensor]:
    """W x + b of every ``step``-th square window of rows (places, size), in either direction: rows
    of it. Rows of zeros stand behind fewer than a window has."""
    width = layer.kernel_size[0]
    matrix = torch.stack([*rows, *[torch.zeros_like(rows[0])] * (width - len(rows))])
    found = []
    for row in range(0, len(matrix) - width + 1, step):
        starts = range(0, matrix.shape[1] - width + 1, step)
        squares = [matrix[row : row + width, place : place + width] for place in starts]
        found.append(torch.stack([torch.einsum("oiab,abi->o", layer.weight, each) + layer.bias for each in squares]))
    return found


def written_out(model: GraphCapsules, graphs: list[Tensor]) -> Tensor:
    """The lengths of the label capsules of one text with these sub-graphs (n, width)."""
    rows = [row_of(model, graphs[start : start + 2]) for start in range(0, len(graphs), 2)]
    maps = [each.clamp(min=0) for each in windows_of(model.maps, attended_rows(model, rows))]
    votes = []
    for row in windows_of(model.primary, maps, step=2):
        for features in row:
            for type, child in enumerate(features.split(SIZE)):
                votes.append([w @ squashed(child) for w in model.routing.transformations[type]])
    return torch.stack([(v * v).sum().sqrt() for v in routed(votes, model.routing.iterations)])


SIZES = [[9, 8, 7, 6, 9, 5, 4, 3, 9, 8, 7, 2, 9, 9, 1], [9, 7, 5, 3, 1, 2, 8, 9, 4, 6, 7, 2, 1], [9] * 9]
SIZES += [[5, 6, 7, 8], [3, 9, 2], [4], [1]]
"""With windows of three, of these roots there are eight, seven, five, two, two, one and one rows:
six, five, three and one rows of maps, and two, two, one and one rows of capsules; the last texts
have fewer rows than a window."""


def graphs_of(batch: WordBatch, sizes: list[list[int]]) -> list[list[Tensor]]:
    """The vectors of each sub-graph of each text, without padding."""
    texts = batch.vectors.unflatten(1, (-1, AROUND))
    return [
        [graph[:words] for graph, words in zip(text, each, strict=False)]
        for text, each in zip(texts, sizes, strict=True)
    ]


@pytest.mark.parametrize("iterations", [1, 3])
def test_a_text_has_the_lengths_of_capsules_routed_from_its_sub_graphs(iterations):
    """Layer by layer in loops, each text alone: padding words, padding roots and windows that reach
    beyond the rows stand for nothing, and routing is of one text."""
    model, batch = model_of(iterations=iterations), batch_of(*SIZES)
    expected = torch.stack([written_out(model, graphs) for graphs in graphs_of(batch, SIZES)])
    assert expected.std() > 0.01, "the reference tells no text or label from another"
    assert_same(model(batch), expected, rtol=1e-4, atol=1e-5)
    assert model(batch_of(*SIZES[3:])).shape == (4, 5), "no text of this batch fills a window"
    rows, pairs = model.rows(batch)
    assert pairs.tolist() == [8, 7, 5, 2, 2, 1, 1] and rows.shape == (7, 8, AROUND - 2, 6)
    assert not any(row[count:].any() for row, count in zip(rows, pairs, strict=True))


def test_two_neighbouring_roots_share_a_row_and_all_its_states_are_read():
    """Pooled are roots at the same place, not the places of a root; every state counts, the first
    one too."""
    model, batch = model_of(), batch_of([9] * 6)
    rows, _ = model.rows(batch)
    moved = batch.vectors.detach().clone().unflatten(1, (-1, AROUND))
    moved[0, 3] = torch.randn(AROUND, WIDTH, generator=torch.Generator().manual_seed(1))
    other, _ = model.rows(batch._replace(vectors=moved.flatten(1, 2)))
    assert (other != rows).flatten(2).any(2).tolist() == [[False, True, False]]
    read = []
    model.maps.register_forward_pre_hook(lambda module, inputs: read.append(inputs[0]))
    model(batch)
    slopes = torch.autograd.grad(model(batch).sum(), read[1])[0]
    assert (slopes.abs().sum(1) > 0).all(), "a state of a row is read by nothing"


def test_windows_that_the_words_do_not_fill_are_refused():
    with pytest.raises(ValueError, match="around=6: windows of windows of 3 places take 7 words"):
        model_of(around=6)
    with pytest.raises(ValueError, match="around=18: windows of windows of 9 places take 19 words"):
        GraphCapsules(WIDTH, len(LABELS), TREE, around=18)


def test_no_rounds_of_routing_are_refused():
    with pytest.raises(ValueError, match="iterations is 0: routing takes at least one"):
        model_of(iterations=0)


def test_the_order_of_the_texts_of_a_batch_changes_nothing():
    """In the authors' code the agreement of a batch routes each of its texts."""
    model, batch, turned = model_of(), batch_of(*SIZES), torch.tensor([3, 1, 6, 4, 0, 2, 5])
    there = batch._replace(**{name: getattr(batch, name)[turned] for name in ("ids", "mask", "lengths", "vectors")})
    torch.testing.assert_close(model(there), model(batch)[turned])
    first = batch._replace(**{name: getattr(batch, name)[:1] for name in ("ids", "mask", "lengths", "vectors")})
    torch.testing.assert_close(model(first), model(batch)[:1])


def test_the_words_of_a_sub_graph_have_an_order_and_its_root_an_attention():
    """A bag would not see two words of one sub-graph change places, nor plain rows what a root is
    worth; roots to which all attend alike keep their rows."""
    model, batch = model_of(), batch_of([9, 4, 8, 9, 7, 3])
    rows, pairs = model.rows(batch)
    swapped = batch.vectors.detach().clone()
    swapped[0, [0, 1]] = swapped[0, [1, 0]]
    other, _ = model.rows(batch._replace(vectors=swapped))
    assert pairs.tolist() == [3] and (other[0, 0] - rows[0, 0]).abs().max() > 0.05
    assert torch.equal(other[0, 1:], rows[0, 1:])
    read = []
    model.maps.register_forward_pre_hook(lambda module, inputs: read.append(inputs[0].movedim(1, -1)))
    with torch.no_grad():
        model(batch)
        model.attention.context.zero_()
        model(batch)
    assert (read[0] - rows).abs().max() > 0.05
    torch.testing.assert_close(read[1], rows.detach())


def with_cosines(cosines: list[list[float]], **settings) -> GraphCapsules:
    model = model_of(**settings)
    model.cosines.copy_(torch.tensor(cosines))
    return model


COSINES = [
    [1.0, 0.8, 0.2, 0.0, -0.2],
    [0.8, 1.0, 0.0, 0.2, 0.2],
    [0.2, 0.0, 1.0, 0.5, 0.5],
    [0.0, 0.2, 0.5, 1.0, 0.7],
    [-0.2, 0.2, 0.5, 0.7, 1.0],
]


def test_the_weights_of_wrong_labels_by_hand():
    """One label, two labels, none at all, and all of them."""
    model = with_cosines(COSINES)
    labels = torch.tensor([[1.0, 0, 0, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]])
    weights = model.weights(labels)
    # similarities .8, .2, 0, -.2, in the mean .2; and .1, .1, .6, in the mean .8 / 3
    torch.testing.assert_close(weights[0, 1:], torch.tensor([0.7, 1.0, 1.1, 1.2]))
    torch.testing.assert_close(
        weights[1, [0, 1, 4]], 1 - torch.tensor([0.1 - 0.8 / 3, 0.1 - 0.8 / 3, 0.6 - 0.8 / 3]) / 2
    )
    torch.testing.assert_close(weights[2], torch.ones(5))
    assert weights[3].isfinite().all()
    stronger = with_cosines(COSINES, taxonomy=0.25).weights(labels)
    torch.testing.assert_close(stronger[0, 1:], torch.tensor([0.85, 1.0, 1.05, 1.1]))


def test_the_margin_loss_by_hand():
    """What is there should be longer than .9, and what is not shorter than .1, at half the weight
    that its similarity gives it."""
    lengths = torch.tensor([[0.5, 0.6, 0.3, 0.1, 0.2], [0.2, 0.0, 0.95, 0.9, 0.6]], requires_grad=True)
    labels = torch.tensor([[1.0, 0, 0, 0, 0], [0, 0, 1, 1, 0]])
    model = with_cosines(COSINES)
    found = model.set_losses(lengths, labels)
    first = 0.4**2 + (0.7 * 0.5**2 + 1.0 * 0.2**2 + 1.2 * 0.1**2) / 2
    near, far = 1 - (0.6 - 0.8 / 3) / 2, 1 - (0.1 - 0.8 / 3) / 2
    second = (far * 0.1**2 + near * 0.5**2) / 2
    torch.testing.assert_close(found, torch.tensor([first, second]))
    factors = torch.tensor([[0, 0.7, 1.0, 1.1, 1.2], [far, far, 0, 0, near]])
    here, absent = (0.9 - lengths).clamp(min=0) ** 2, factors / 2 * (lengths - 0.1).clamp(min=0) ** 2
    assert_same(found, torch.where(labels == 1, here, absent).sum(1))
    torch.testing.assert_close(model.objective(lengths[:1], torch.tensor([0])), torch.tensor(first))


def test_a_sibling_in_error_costs_less_than_a_label_of_another_branch():
    """By the vectors of the tree itself, for one label and for a set."""
    model = model_of()
    for labels in ([0.0, 0, 1, 0, 0], [0, 0, 1, 1, 0]):
        gold = torch.tensor([labels]).float()
        wrong = torch.eye(5)[[4, 0, 1]] * 0.8 + gold * 0.9  # the sibling b.w, and both of the other branch
        sibling, far, further = model.set_losses(wrong, gold.expand(3, -1)).tolist()
        assert 0 < sibling < 0.8 * min(far, further)


@pytest.mark.parametrize("alike", [1.0, 0.7, 0.0, -0.3])
def test_where_all_labels_are_as_similar_the_loss_is_the_plain_margin_loss(alike):
    """And where the task has no tree, whatever the number of right labels."""
    generator = torch.Generator().manual_seed(0)
    lengths, labels = torch.rand(40, 5, generator=generator), (torch.rand(40, 5, generator=generator) < 0.3).float()
    equal = torch.full((5, 5), alike).fill_diagonal_(1).tolist()
    flat = model_of(LabelTree(LABELS, {}))
    assert not flat.cosines.any()
    for model in (with_cosines(equal), flat, model_of(taxonomy=0.0)):
        torch.testing.assert_close(model.set_losses(lengths, labels), set_margin_losses(lengths, labels))
    one = torch.arange(40) % 5
    torch.testing.assert_close(flat.objective(lengths, one), separate_margin_loss(lengths, one))


def test_one_label_and_sets_of_labels_are_learnt_and_said():
    """The same capsules for both: a task of one label trains by the loss of a set of one, and a
    label of a set is as probable as its capsule is long."""
    entry = registry.entry("tasks", "newsgroups20")
    assert GraphCapsules.output_form() == "label scores"
    assert GraphCapsules.can_answer("classify") and GraphCapsules.can_answer("multilabel")
    view = GraphCapsules.view_for(entry, SMALL)
    corpus = Corpus(registry.load(entry)(entry), "mini", None, view, GraphCapsules.output_form())
    batch = corpus.train.collate(np.arange(6))
    torch.manual_seed(0)
    model = build(GraphCapsules, problem("classify"), SMALL, view, corpus.target, 4)
    cosines = model.encoder.cosines
    names = corpus.target.labels
    for one, name in enumerate(names):
        near = {other: cosines[one, two].item() for two, other in enumerate(names) if other != name}
        siblings = [cosine for other, cosine in near.items() if other.split(".")[0] == name.split(".")[0]]
        rest = [cosine for other, cosine in near.items() if other.split(".")[0] != name.split(".")[0]]
        assert min(siblings, default=1) > max(rest), "the tree of the task is not the one of its labels"
    scores = model(batch.inputs)
    losses = Supervised().at(model, model.read(batch.inputs), batch.target)
    expected = model.encoder.set_losses(scores, torch.eye(len(names))[batch.target]).mean()
    assert_same(losses["loss"], expected)
    assert model.encoder.set_probabilities(scores) is scores


def test_sizes():
    """The papers' sizes, and the view's, which are the settings'."""
    model = GraphCapsules(50, 3, LabelTree(LABELS[:3], {}))
    assert (
        model.words.weight.shape == (64, 50, 3)
        and model.words.padding == (0,)
        and model.order.weight_ih_l0.shape == (4 * 128, 64)
    )
    assert model.attention.hidden.weight.shape == (128, 128)
    assert model.maps.weight.shape == (256, 128, 9, 9) and model.primary.weight.shape == (32 * 8, 256, 9, 9)
    assert model.routing.transformations.shape == (32, 3, 16, 8) and model.routing.iterations == 3
    read, full = [], torch.ones(1, 100 * 20, dtype=torch.bool)
    model.routing.register_forward_pre_hook(lambda module, inputs: read.append(inputs[0].shape))
    model(WordBatch(full.long(), full, full.sum(1), torch.randn(1, 100 * 20, 50)))
    assert read == [(1, 17, 32, 8)], "the program has 17 x 1 places of primary capsules"
    assert (model.around, model.taxonomy) == (20, 0.5)
    assert GraphCapsules.view == SubgraphsInOrder(roots=100, around=20, reach=2)
    view = GraphCapsules.view_for(registry.entry("tasks", "newsgroups20"), {"roots": 7, "around": 3})
    assert type(view) is SubgraphsInOrder and (view.roots, view.around) == (7, 3)
