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
from architectures.blocks.windows import lengthen, window_mask, windows_inside
from architectures.blocks.word_subgraphs import SubgraphsInOrder
from architectures.capsule.capsnet import DynamicRouting
from harness.kinds import TextEncoder
from harness.label_tree import LabelTree
from harness.registry import Recipe, register
from harness.views.words import WordBatch

NEIGHBOURS = 2
"""Roots whose maps are pooled into one row."""
STRIDE = 2
"""Every second window, in either direction, has primary capsules."""


@register(
    "he_agcrcnn",
    name="Hierarchical taxonomy-aware attentional graph capsule RCNN",
    kind="text",
    paper="Peng et al. 2019",
    source="M2.7[106]",
    year=2019,
    version=3,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=32, vector_dims=50),
    tiny={
        "roots": 12,
        "around": 8,
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
        "Nodes are words in lower case, not lemmas. Roots are the most connected words; the authors' the commonest.",
        (
            "A sub-graph has each of its words once, and zeros where a part of the text has no more; the authors' draws"
            " places of the text at random, beside all those of its root."
        ),
        (
            "A matrix of votes is shared by all windows, as texts differ in their number of roots; where a text has"
            " fewer roots than there is room for, no capsule stands for the rest."
        ),
        "Each text is routed by itself; the authors' code averages the agreement over the batch.",
        (
            "A label is as probable as its capsule is long; the authors' code divides by the longest, so that one label"
            " is always sure, and trains by a cross-entropy where it knows a taxonomy. It divides word vectors by 18."
        ),
        (
            "The form of the weights in the margin loss, the walks over the taxonomy, which has a root above all, and"
            " the vectors of labels are ours."
        ),
        "States are normalised: of numbers as small as an LSTM's first ones, capsules would vanish.",
        (
            "No program of the authors with attention is known to us: that it weighs rows, by their last states, is"
            " ours, and so are its scale and the start of convolutions and votes."
        ),
    ),
)
class GraphCapsules(TextEncoder):
    """The lengths (B, labels) of capsules, one for each label, routed by agreement from capsules
    over the sub-graphs around a text's ``roots`` most connected words.

    The words of each sub-graph stand in the order of the text. A convolution over three of them
    with ReLU, the maximum over every two neighbouring roots at each place, and an LSTM over the
    places of such a pair: its states, each with mean zero and variance one over its features, are
    the row of the pair. Rows are multiplied by their attention, which reads their last state, times
    the number of rows, so that the usual factor is one. A convolution over ``window`` rows and
    ``window`` places with ReLU, and ``types`` primary capsules at every second window of its
    positions in both directions, read the matrix of rows and places.

    Trained by a margin loss in which a wrong label weighs one less ``taxonomy`` times what its
    similarity to the right ones exceeds that of the text's wrong labels in the mean, similarity
    being the mean cosine of vectors from walks over the taxonomy
    (:func:`~architectures.blocks.label_walks.label_cosines`): one near the truth costs less. Where
    all are as similar, and without a tree, it is the plain margin loss. Slow, because windows over
    rows and places read all states of up to fifty LSTMs.
    """

    view: ClassVar = SubgraphsInOrder(roots=100, around=20)
    view_settings: ClassVar = {"roots": "roots", "around": "around"}

    def __init__(
        self,
        width: int,
        classes: int,
        tree: LabelTree,
        roots: int = 100,
        around: int = 20,
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
        if around < 2 * window + 1:
            raise ValueError(f"around={around}: windows of windows of {window} places take {2 * window + 1} words")
        self.around, self.taxonomy = around, taxonomy
        self.words = nn.Conv1d(width, word_maps, 3)
        self.order = nn.LSTM(word_maps, hidden, batch_first=True)
        self.attention = ContextAttention(hidden, hidden)
        self.maps = nn.Conv2d(hidden, maps, window)
        self.primary = nn.Conv2d(maps, types * size, window, stride=STRIDE)
        self.routing = DynamicRouting(types, size, classes, label_size, iterations)
        for layer in (self.words, self.maps, self.primary):
            keep_scale(layer)
        self.register_buffer("cosines", label_cosines(tree))

    def rows(self, words: WordBatch) -> tuple[Tensor, Tensor]:
        """The row (B, pairs, places, ``hidden``) of every two roots, zeros where there is none, and
        the number of rows of each text (B,). The last of an odd number of roots has a row alone."""
        vectors = (words.vectors * words.mask[..., None]).unflatten(1, (-1, self.around))
        roots = words.mask.unflatten(1, (-1, self.around)).any(2).sum(1)
        maps = torch.relu(self.words(vectors.flatten(0, 1).mT)).unflatten(0, vectors.shape[:2])
        pooled, pairs = pool_by(maps.flatten(2), roots, NEIGHBOURS)
        there = window_mask(pairs, 1, pooled.shape[1])
        states, _ = self.order(pooled[there].unflatten(1, maps.shape[2:]).mT)
        rows = states.new_zeros(*there.shape, *states.shape[1:])
        return rows.masked_scatter(there[..., None, None], F.layer_norm(states, states.shape[2:])), pairs

    def forward(self, words: WordBatch) -> Tensor:
        rows, pairs = self.rows(words)
        window, types = self.maps.kernel_size[0], len(self.routing.transformations)
        shares = self.attention.weights(rows[:, :, -1], window_mask(pairs, 1, rows.shape[1]))
        attended = rows * (shares * pairs[:, None])[..., None, None]
        maps = torch.relu(self.maps(lengthen(attended, window).movedim(-1, 1))).movedim(1, -1)
        maps = present(maps, pairs, window)
        primary = self.primary(lengthen(maps, window).movedim(-1, 1)).movedim(1, -1)
        children = squash(primary.unflatten(-1, (types, -1)))
        inside = windows_inside(windows_inside(pairs, window), window)
        there = window_mask(-(-inside // STRIDE), 1, children.shape[1])
        capsules = self.routing((children * there[..., None, None, None]).flatten(1, 2))
        return torch.linalg.vector_norm(capsules, dim=-1)

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
