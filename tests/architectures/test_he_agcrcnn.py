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
from tests.architectures.test_graph_cnn import AROUND, WIDTH, batch_of
from tests.support.models import small
from tests.support.oracles import convolution, linear, lstm, softmax_mean
from tests.support.same import assert_same

SIZE = 3
LABELS = ["a.x", "a.y", "b.u", "b.v", "b.w"]
TREE = LabelTree(LABELS, {label: label[0] for label in LABELS})
SMALL = {"roots": 12, "around": AROUND, "word_maps": 5, "hidden": 6, "maps": 7, "window": 3}
SMALL |= {"types": 2, "size": SIZE, "label_size": 4}


def model_of(tree: LabelTree = TREE, **settings) -> GraphCapsules:
    return small(GraphCapsules, WIDTH, len(LABELS), tree, stretch=2.0, **SMALL | settings)


def row_of(model: GraphCapsules, words: Tensor) -> Tensor:
    """The row of one root, by its words (n, width) in their order."""
    maps = [each.clamp(min=0) for each in convolution(model.words, words, left=1, right=1)]
    pooled = [torch.stack(maps[start : start + 2]).amax(0) for start in range(0, len(maps), 2)]
    last = lstm(model.order, pooled)[-1]
    apart = last - last.sum() / len(last)
    return apart / ((apart * apart).sum() / len(last) + 1e-5).sqrt()


def attended_rows(model: GraphCapsules, rows: list[Tensor]) -> list[Tensor]:
    """Each row times its attention and the number of rows."""
    layer = model.attention
    scores = [layer.context @ torch.tanh(linear(layer.hidden, row)) for row in rows]
    shares = softmax_mean(scores, torch.eye(len(rows)))
    return [row * share * len(rows) for row, share in zip(rows, shares, strict=True)]


def written_out(model: GraphCapsules, graphs: list[Tensor]) -> Tensor:
    """The lengths of the label capsules of one text with these sub-graphs (n, width)."""
    matrix, window = attended_rows(model, [row_of(model, words) for words in graphs]), model.maps.kernel_size[0]
    maps = [each.clamp(min=0) for each in convolution(model.maps, matrix, right=max(0, window - len(matrix)))]
    votes = []
    for features in convolution(model.primary, maps, right=max(0, window - len(maps)))[::2]:
        for type, child in enumerate(features.split(SIZE)):
            votes.append([w @ squashed(child) for w in model.routing.transformations[type]])
    return torch.stack([(v * v).sum().sqrt() for v in routed(votes, model.routing.iterations)])


SIZES = [[5, 4, 2, 1, 3, 5, 2, 4, 1], [3, 5, 4, 2, 2, 1], [3, 1, 2, 2], [2, 3], [1]]
"""With windows of three, nine roots have three places of capsules, six have one and the maps of two
beyond it, and the last are shorter than one window, or than a window of windows."""


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
    beyond the roots stand for nothing, and routing is of one text."""
    model, batch = model_of(iterations=iterations), batch_of(*SIZES)
    expected = torch.stack([written_out(model, graphs) for graphs in graphs_of(batch, SIZES)])
    assert expected.std() > 0.01, "the reference tells no text or label from another"
    assert_same(model(batch), expected, rtol=1e-4, atol=1e-5)
    assert model(batch_of(*SIZES[3:])).shape == (2, 5), "no text of this batch fills a window"
    rows, there = model.rows(batch)
    assert there.sum(1).tolist() == [9, 6, 4, 2, 1] and not rows[~there].any()


def test_no_rounds_of_routing_are_refused():
    with pytest.raises(ValueError, match="iterations is 0: routing takes at least one"):
        model_of(iterations=0)


def test_the_order_of_the_texts_of_a_batch_changes_nothing():
    """In the authors' code the agreement of a batch routes each of its texts."""
    model, batch, turned = model_of(), batch_of(*SIZES), torch.tensor([3, 1, 4, 0, 2])
    there = batch._replace(**{name: getattr(batch, name)[turned] for name in ("ids", "mask", "lengths", "vectors")})
    torch.testing.assert_close(model(there), model(batch)[turned])
    first = batch._replace(**{name: getattr(batch, name)[:1] for name in ("ids", "mask", "lengths", "vectors")})
    torch.testing.assert_close(model(first), model(batch)[:1])


def test_the_words_of_a_sub_graph_have_an_order_and_its_root_an_attention():
    """A bag would not see two words of one sub-graph change places, nor plain rows what a root is
    worth; roots to which all attend alike keep their rows."""
    model, batch = model_of(), batch_of([5, 4, 3, 2])
    rows, there = model.rows(batch)
    swapped = batch.vectors.detach().clone()
    swapped[0, [0, 1]] = swapped[0, [1, 0]]
    other, _ = model.rows(batch._replace(vectors=swapped))
    assert there.all() and (other[0, 0] - rows[0, 0]).abs().max() > 0.05
    assert torch.equal(other[0, 1:], rows[0, 1:])
    read = []
    model.maps.register_forward_pre_hook(lambda module, inputs: read.append(inputs[0].mT))
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
    assert model.words.weight.shape == (64, 50, 3) and model.order.weight_ih_l0.shape == (4 * 128, 64)
    assert model.attention.hidden.weight.shape == (128, 128)
    assert model.maps.weight.shape == (256, 128, 9) and model.primary.weight.shape == (32 * 8, 256, 9)
    assert model.routing.transformations.shape == (32, 3, 16, 8) and model.routing.iterations == 3
    assert (model.around, model.taxonomy) == (10, 0.5)
    assert GraphCapsules.view == SubgraphsInOrder(roots=96, around=10, reach=2)
    view = GraphCapsules.view_for(registry.entry("tasks", "newsgroups20"), {"roots": 7, "around": 3})
    assert type(view) is SubgraphsInOrder and (view.roots, view.around) == (7, 3)
