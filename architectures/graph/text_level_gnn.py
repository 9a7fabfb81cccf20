"""Text-level graph neural network: one edge weight for each pair of words, shared by all texts."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from harness.kinds import TextEncoder
from harness.registry import Recipe, register
from harness.views.graph import GraphBatch, WordPairGraphs


@register(
    "text_level_gnn",
    name="Text-level GNN",
    kind="text",
    paper="Huang et al. 2019",
    source="M2.7[109]",
    year=2019,
    recipe=Recipe(
        optimizer="adam",
        lr=0.001,
        batch_size=32,
        epochs=200,
        patience=10,
        weight_decay=0.0001,
        decay_exempt=("vectors",),
    ),
    vectors_of_paper="GloVe",
    deviations=(
        "ReLU acts below the last matrix, as in the authors' program; in the paper's equation above it, on the scores.",
        "A word that a text repeats is one node, as in that program.",
        "The penalty leaves vectors and edges alone: Adam would take those that no batch reads to 0.",
        "Edges start at 1, as in that program. Each word keeps a share of its old state, as in the paper, which starts"
        " uniform in 0 to 1; that program has no such share.",
        "The penalty is 0.0001, vectors have 300 numbers, and training ends after 10 passes without gain, as in the"
        " paper; that program has 0.000001, 200 and 25.",
        "Pairs that are neighbours at least twice have a weight of their own, as in the paper; in that program pairs"
        " of positive mutual information within 20 words, and most words share one weight for themselves.",
        "The first 400 words of a text are read; that program reads 350.",
    ),
)
class TextLevelGNN(TextEncoder):
    """One round of messages: m_n = max over the neighbours a and n itself of e_an r_a, r'_n = (1 -
    k_n) m_n + k_n r_n; then relu of the sum of all r'.

    The maximum is taken for each feature. The weight e_an belongs to the ordered pair of words a
    and n and k_n to the word n, in whatever text they stand. All pairs that are neighbours less
    than twice in training share one weight (:class:`~harness.views.graph.WordPairGraphs`). Dropout
    acts on the sum, below the ReLU.
    """

    view = WordPairGraphs()

    def __init__(self, width: int, view: WordPairGraphs, dropout: float = 0.5):
        super().__init__()
        self.edges = nn.Embedding(view.pairs, 1)
        self.loops = nn.Embedding(view.width, 1)
        self.keep = nn.Embedding(view.width, 1)
        nn.init.ones_(self.edges.weight)
        nn.init.ones_(self.loops.weight)
        nn.init.uniform_(self.keep.weight)
        self.dropout = nn.Dropout(dropout)
        self.size = width

    def heard(self, graphs: GraphBatch, states: Tensor) -> Tensor:
        """The messages m (nodes, width) of states (nodes, width)."""
        messages = self.edges(graphs.pairs) * states[graphs.sources]
        degrees = torch.bincount(graphs.targets, minlength=len(states))
        around = torch.segment_reduce(messages, "max", lengths=degrees, axis=0)  # -inf without neighbours
        return torch.maximum(around, self.loops(graphs.ids.flatten()) * states)

    def forward(self, graphs: GraphBatch) -> Tensor:
        states, keep = graphs.vectors.flatten(0, 1), self.keep(graphs.ids.flatten())
        states = (1 - keep) * self.heard(graphs, states) + keep * states
        summed = (states.unflatten(0, graphs.mask.shape) * graphs.mask[..., None]).sum(1)
        return torch.relu(self.dropout(summed))
