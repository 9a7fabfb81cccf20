"""Graph convolutional network on the word graph of each text."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from harness.kinds import TextEncoder
from harness.layers.pooling import pool
from harness.registry import Recipe, register
from harness.views.graph import GraphBatch, WordGraphs


@register(
    "gcn",
    name="Graph convolutional network (GCN)",
    kind="text",
    paper="Kipf & Welling 2016",
    source="M2.7[102]",
    year=2016,
    recipe=Recipe(optimizer="adam", lr=0.01, batch_size=64, weight_decay=0.0005, decay_exempt=("vectors", "biases")),
    tiny={"hidden": 16},
    deviations=(
        "Nodes are the words of one text, with their vectors; edges count how often two words stand within three words"
        " of each other. The paper has one graph, of citations between papers.",
        "A text is the mean of its words' states, and the task's layer, the second matrix, scores that mean; in the"
        " paper each node has scores.",
        "The L2 penalty is on all matrices but the word vectors; the paper's is on the first one alone.",
        "Batches of 64 texts, and as many passes over them as other recipes make; the paper takes 200 steps on the"
        " whole graph at most.",
    ),
)
class GraphConvolutionalNetwork(TextEncoder):
    """The mean over the words of A H, where H = relu(A X W), A = D^-1/2 (C + I) D^-1/2, and D has
    the row sums of C + I.

    X are the vectors of the words, C the counts of the text's graph. A word sees its neighbours in
    the first step and theirs in the second. The layer above has the second matrix, so that for
    classes all is softmax(A relu(A X W) W'), averaged over the words before the softmax; neither
    matrix has a bias. Dropout acts on X and H.
    """

    view = WordGraphs()
    head_bias = False

    def __init__(self, width: int, hidden: int = 16, dropout: float = 0.5):
        super().__init__()
        self.first = nn.Linear(width, hidden, bias=False)
        nn.init.xavier_uniform_(self.first.weight)
        self.dropout = nn.Dropout(dropout)
        self.size = hidden

    @staticmethod
    def propagation(graphs: GraphBatch) -> Tensor:
        """The matrix A (B, N, N) of each text."""
        counts = graphs.adjacency()
        counts = counts + torch.eye(counts.shape[-1], device=counts.device)
        scale = counts.sum(2).rsqrt()
        return scale[:, :, None] * counts * scale[:, None]

    def forward(self, graphs: GraphBatch) -> Tensor:
        propagation = self.propagation(graphs)
        hidden = torch.relu(propagation @ self.first(self.dropout(graphs.vectors)))
        return pool(propagation @ self.dropout(hidden), graphs.mask, "mean")
