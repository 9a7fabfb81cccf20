"""Tree-based convolutional neural network."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.blocks.trees import bottom_up
from harness.kinds import TreeEncoder
from harness.registry import Recipe, register
from harness.views.tree import TreeBatch, Trees


@register(
    "tbcnn",
    name="Tree-based CNN",
    kind="tree",
    paper="Mou et al. 2015",
    source="M2.3[61] T5",
    year=2015,
    sees=("labels of phrases",),
    recipe=Recipe(optimizer="sgd", lr=0.1, batch_size=25, epochs=30, vector_dims=300),
    tiny={"detectors": 24, "hidden": 16},
    deviations=(
        "Trees of phrases alone; the paper also has trees of dependencies, which need a parser.",
        "Texts alone: the pair form of Mou et al. 2016 needs trees of both texts.",
        "One maximum over all nodes, as in the pair form; over phrases the paper takes one in each of three regions.",
        "The recursive network is trained with the rest; the paper trains it beforehand.",
        "Only the equations are known to us: rate, batch, epochs, dropout and the size of the hidden layer are ours.",
        "The loss of a batch is the mean over its nodes.",
    ),
)
class TreeConvolution(TreeEncoder):
    """The largest answer of each detector to the windows of a tree, a window being a node with its
    two children.

    A word's node is its vector; another one is p = tanh(W [a; b] + bias) of its children, as wide.
    A window of p with children a and b gives tanh(W_p p + W_l a + W_r b + bias), that of a word
    tanh(W_p p + bias): ``detectors`` numbers. Their maximum over a tree passes a hidden layer with
    tanh. A phrase is the tree below its node, so that training has a loss at each node whose label
    is known, and the text is the phrase of the root. Dropout acts before the hidden layer and the
    softmax.
    """

    view = Trees()

    def __init__(self, width: int, detectors: int = 300, hidden: int = 200, dropout: float = 0.5):
        super().__init__()
        self.width = width
        self.composition = nn.Linear(2 * width, width)
        self.of_node = nn.Linear(width, detectors)
        self.of_children = nn.Linear(2 * width, detectors, bias=False)
        self.hidden = nn.Linear(detectors, hidden)
        self.dropout = nn.Dropout(dropout)
        self.size = hidden

    def leaf(self, vectors: Tensor) -> Tensor:
        """Vector and window [p, y] of words' nodes (n, width + detectors)."""
        return torch.cat([vectors, torch.tanh(self.of_node(vectors))], dim=1)

    def parent(self, left: Tensor, right: Tensor) -> Tensor:
        """Vector, and the maximum over the windows from the node downwards (n, width + detectors),
        from the children's."""
        (a, below_left), (b, below_right) = (child.tensor_split([self.width], dim=1) for child in (left, right))
        children = torch.cat([a, b], dim=1)
        node = torch.tanh(self.composition(children))
        window = torch.tanh(self.of_node(node) + self.of_children(children))
        return torch.cat([node, torch.stack([window, below_left, below_right]).amax(0)], dim=1)

    def nodes(self, trees: TreeBatch) -> Tensor:
        pooled = bottom_up(trees, self.leaf(trees.vectors), self.parent)[:, self.width :]
        return self.dropout(torch.tanh(self.hidden(self.dropout(pooled))))
