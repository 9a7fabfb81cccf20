"""Capsules over recurrent convolutions of a text's sub-graphs, and a margin loss that knows which
labels are near each other in their taxonomy."""

from __future__ import annotations

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.capsules import keep_scale, present, set_margin_losses
from architectures.blocks.context_attention import ContextAttention
from architectures.blocks.label_walks import label_cosines
from architectures.blocks.pooling import pool_by
from architectures.blocks.squash import squash
from architectures.blocks.windows import lengthen, windows_inside
from architectures.blocks.word_subgraphs import SubgraphsInOrder
from architectures.capsule.capsnet import DynamicRouting
from harness.kinds import TextEncoder
from harness.label_tree import LabelTree
from harness.layers.pooling import pool
from harness.registry import Recipe, register
from harness.views.words import WordBatch

STRIDE = 2
"""Every second window of roots has primary capsules."""


@register(
    "he_agcrcnn",
    name="Hierarchical taxonomy-aware attentional graph capsule RCNN",
    kind="text",
    paper="Peng et al. 2019",
    source="M2.7[106]",
    year=2019,
    version=2,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=64, vector_dims=50),
    tiny={
        "roots": 12,
        "around": 6,
        "word_maps": 8,
        "hidden": 12,
        "maps": 12,
        "window": 3,
        "types": 4,
        "size": 4,
        "label_size": 6,
    },
    vectors_of_paper="word2vec",
    deviations=(
        "Nodes are words in lower case, not lemmas; the number and order of roots and their words are as in graph_cnn.",
        (
            "Capsules read windows of nine roots with all features of each, not of nine roots and nine features:"
            " features have no order, and the paper's form has some fifty times as many primary capsules."
        ),
        (
            "A matrix of votes is shared by all windows of roots, as texts differ in their number; where a text has"
            " fewer roots than there is room for, no capsule stands for the rest."
        ),
        "Each text is routed by itself; the authors' code averages the agreement over the batch.",
        (
            "A label is as probable as its capsule is long; the authors' code divides by the longest, so that one label"
            " is always sure, and trains by a cross-entropy."
        ),
        (
            "The form of the weights in the margin loss, the walks over the taxonomy, which has a root above all, and"
            " the vectors of labels are ours."
        ),
        "Rows of the matrix are normalised: of numbers as small as an LSTM's first states, capsules would vanish.",
        "The scale of the attention, the start of convolutions and votes, the optimiser and its batches are ours.",
    ),
)
class GraphCapsules(TextEncoder):
    """The lengths (B, labels) of capsules, one for each label, routed by agreement from capsules
    over the sub-graphs around a text's ``roots`` most connected words.

    The words of each sub-graph stand in the order of the text. A convolution over three of them
    with ReLU, the maximum of every two positions and an LSTM, whose last state, with mean zero and
    variance one over its features, is the row of the root. Rows are multiplied by their attention
    times the number of roots, so that the usual factor is one. A convolution over ``window`` roots
    with ReLU, and ``types`` primary capsules at every second window of its positions, read the
    matrix.

    Trained by a margin loss in which a wrong label weighs one less ``taxonomy`` times what its
    similarity to the right ones exceeds that of the text's wrong labels in the mean, similarity
    being the mean cosine of vectors from walks over the taxonomy
    (:func:`~architectures.blocks.label_walks.label_cosines`): one near the truth costs less. Where
    all are as similar, and without a tree, it is the plain margin loss.
    """

    view: ClassVar = SubgraphsInOrder()
    view_settings: ClassVar = {"roots": "roots", "around": "around"}

    def __init__(
        self,
        width: int,
        classes: int,
        tree: LabelTree,
        roots: int = 96,
        around: int = 10,
        word_maps: int = 64,
        hidden: int = 128,
        maps: int = 256,
        window: int = 9,
        types: int = 32,
        size: int = 8,
        label_size: int = 16,
        iterations: int = 3,
        taxonomy: float = 0.5,
    ):
        super().__init__()
        self.around, self.taxonomy = around, taxonomy
        self.words = nn.Conv1d(width, word_maps, 3, padding=1)
        self.order = nn.LSTM(word_maps, hidden, batch_first=True)
        self.attention = ContextAttention(hidden, hidden)
        self.maps = nn.Conv1d(hidden, maps, window)
        self.primary = nn.Conv1d(maps, types * size, window, stride=STRIDE)
        self.routing = DynamicRouting(types, size, classes, label_size, iterations)
        for layer in (self.words, self.maps, self.primary):
            keep_scale(layer)
        self.register_buffer("cosines", label_cosines(tree))

    def rows(self, words: WordBatch) -> tuple[Tensor, Tensor]:
        """The row of each root (B, roots, ``hidden``), zeros where there is none, and which roots
        there are (B, roots)."""
        mask = words.mask.unflatten(1, (-1, self.around))
        there = mask.any(2)
        vectors = (words.vectors * words.mask[..., None]).unflatten(1, (-1, self.around))[there]
        maps = torch.relu(self.words(vectors.mT)).mT
        pooled, lengths = pool_by(maps, mask[there].sum(1), 2)
        states, _ = self.order(pooled)
        inside = torch.arange(states.shape[1], device=lengths.device) < lengths[:, None]
        rows = states.new_zeros(*there.shape, states.shape[2])
        last = F.layer_norm(pool(states, inside, "last"), states.shape[2:])
        return rows.masked_scatter(there[..., None], last), there

    def forward(self, words: WordBatch) -> Tensor:
        rows, there = self.rows(words)
        roots, window, types = there.sum(1), self.maps.kernel_size[0], len(self.routing.transformations)
        attended = rows * (self.attention.weights(rows, there) * roots[:, None])[..., None]
        maps = torch.relu(self.maps(lengthen(attended, window).mT)).mT
        maps = present(maps[..., None, :], roots, window).squeeze(2)
        primary = self.primary(lengthen(maps, window).mT).mT
        places = windows_inside(windows_inside(roots, window), window)
        children = squash(primary.unflatten(-1, (types, -1)))
        return torch.linalg.vector_norm(self.routing(present(children, -(-places // STRIDE), 1)), dim=-1)

    def objective(self, scores: Tensor, labels: Tensor) -> Tensor:
        return self.set_losses(scores, F.one_hot(labels, scores.shape[1]).to(scores)).mean()

    def set_losses(self, outputs: Tensor, labels: Tensor) -> Tensor:
        return set_margin_losses(outputs, labels, absent=self.weights(labels) / 2)

    def set_probabilities(self, outputs: Tensor) -> Tensor:
        return outputs

    def weights(self, labels: Tensor) -> Tensor:
        """Weights (B, labels) of wrong labels in the margin loss: one in the mean over those of a
        text."""
        wrong = 1 - labels
        similar = labels @ self.cosines / labels.sum(1, keepdim=True).clamp(min=1)
        usual = (similar * wrong).sum(1, keepdim=True) / wrong.sum(1, keepdim=True).clamp(min=1)
        return 1 - self.taxonomy * (similar - usual)
