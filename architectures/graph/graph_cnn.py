"""Convolutions over sub-graphs of a text's words, below a layer whose rows stay near those of the
labels above them."""

from __future__ import annotations

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.word_subgraphs import WordSubgraphs
from harness.kinds import TextEncoder
from harness.label_tree import LabelTree
from harness.registry import Recipe, register
from harness.views.words import WordBatch


@register(
    "graph_cnn",
    name="Hierarchically regularised deep graph-CNN",
    kind="text",
    paper="Peng et al. 2018",
    source="M2.7[105]",
    year=2018,
    version=2,
    recipe=Recipe(
        optimizer="adam", lr=0.001, batch_size=32, weight_decay=0.0005, decay_exempt=("vectors",), vector_dims=50
    ),
    tiny={"roots": 12, "around": 6, "maps": (8, 8, 8), "hidden": (24, 16), "dropout": 0.0},
    vectors_of_paper="word2vec",
    deviations=(
        "Nodes are words in lower case, not lemmas.",
        "Convolutions have no local response normalisation.",
        (
            "Of the authors' two programs, one has the optimiser, its batches and the rows that stay near each other,"
            " the other the maps, the dropout and the weight decay; here they are together."
        ),
        "Labels above those that are scored have rows of their own in the last layer, which nothing else trains.",
    ),
)
class GraphCNN(TextEncoder):
    """Scores (B, classes) of a text from the sub-graphs around its ``roots`` most connected words.

    Three convolutions over the words of each sub-graph with ReLU, the first two followed by the
    maximum of every two positions, the last one by that of all; hidden layers over the roots in
    their order; a layer that scores the labels. In training ``regularisation`` times the sum over
    the edges of the label tree of half the squared distance between the last layer's row of the
    parent and that of the child is added; ``classes`` times that for sets of labels, whose loss is
    a sum over labels where the authors' is a mean.
    """

    view: ClassVar = WordSubgraphs()
    view_settings: ClassVar = {"roots": "roots", "around": "around"}

    def __init__(
        self,
        width: int,
        classes: int,
        tree: LabelTree,
        roots: int = 96,
        around: int = 10,
        maps: tuple = (64, 96, 96),
        windows: tuple = (5, 3, 3),
        hidden: tuple = (1024, 512),
        dropout: float = 0.5,
        regularisation: float = 0.00005,
    ):
        super().__init__()
        self.classes, self.roots, self.around, self.regularisation = classes, roots, around, regularisation
        self.edges = tree.edges
        widths = (width, *maps)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(below, above, window, padding=window // 2)
            for below, above, window in zip(widths, maps, windows, strict=False)
        )
        self.dropout = nn.Dropout(dropout)
        sizes = (roots * maps[-1], *hidden)
        self.hidden = nn.ModuleList(nn.Linear(*pair) for pair in zip(sizes, hidden, strict=False))
        self.output = nn.Linear(hidden[-1], len(tree.nodes))

    def forward(self, words: WordBatch) -> Tensor:
        vectors = (words.vectors * words.mask[..., None]).unflatten(1, (-1, self.around))
        states = vectors.flatten(0, 1).transpose(1, 2)
        for number, convolution in enumerate(self.convolutions):
            states = torch.relu(convolution(states))
            last = number == len(self.convolutions) - 1
            states = states.amax(2, keepdim=True) if last else F.max_pool1d(states, 2, ceil_mode=True)
        there = words.mask.unflatten(1, (-1, self.around)).any(2)
        found = states.squeeze(2).unflatten(0, there.shape) * there[..., None]
        state = F.pad(found, (0, 0, 0, self.roots - found.shape[1])).flatten(1)
        for hidden in self.hidden:
            state = self.dropout(torch.relu(hidden(state)))
        self.regularise(1)
        return self.output(state)[:, : self.classes]

    def regularise(self, times: int) -> None:
        """Add the recursive regularisation so many times to the training loss."""
        if self.edges:
            self.add_loss("recursive regularisation", times * self.regularisation * self.distance())

    def distance(self) -> Tensor:
        """Half the sum of squared distances between the rows of each parent and each of its
        children."""
        parents, children = zip(*self.edges, strict=True)
        rows = self.output.weight
        return (rows[list(parents)] - rows[list(children)]).square().sum() / 2

    def set_losses(self, outputs: Tensor, labels: Tensor) -> Tensor:
        self.regularise(self.classes - 1)  # beside the one of the pass
        return F.binary_cross_entropy_with_logits(outputs, labels, reduction="none").sum(1)
