"""Graph attention network on the word graph of each text."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from harness.kinds import TextEncoder
from harness.layers.pooling import pool
from harness.registry import Recipe, register
from harness.views.graph import GraphBatch, WordGraphs


class GraphAttention(nn.Module):
    """Heads that each weigh a node's neighbours and itself: states (B, N, width), edges (B, N, N)
    with loops -> (B, heads, N, hidden).

    Head k gives sum_j alpha_ij W_k h_j, alpha_i being the softmax over the neighbours j of
    LeakyReLU(a.W_k h_i + b.W_k h_j), with slope 0.2. Dropout acts on the states and on alpha.
    """

    def __init__(self, width: int, hidden: int, heads: int, dropout: float):
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(width, heads * hidden, bias=False)
        self.receiver, self.sender = (nn.Parameter(torch.empty(heads, hidden, 1)) for _ in range(2))
        for weight in (*self.project.weight.chunk(heads), *self.receiver, *self.sender):
            nn.init.xavier_uniform_(weight)
        self.dropout = nn.Dropout(dropout)

    def forward(self, states: Tensor, edges: Tensor) -> Tensor:
        values = self.project(self.dropout(states)).unflatten(2, (self.heads, -1)).transpose(1, 2)
        scores = F.leaky_relu(values @ self.receiver + (values @ self.sender).transpose(2, 3), 0.2)
        weights = scores.masked_fill(~edges[:, None], -torch.inf).softmax(3)
        return self.dropout(weights) @ values


@register(
    "gat",
    name="Graph attention network (GAT)",
    kind="text",
    paper="Velickovic et al. 2017",
    source="M2.7[104]",
    year=2017,
    recipe=Recipe(optimizer="adam", lr=0.01, batch_size=64, weight_decay=0.001, decay_exempt=("vectors", "biases")),
    tiny={"hidden": 4, "heads": 2, "last_hidden": 16, "last_heads": 2},
    deviations=(
        "Nodes are the words of one text, with their vectors; edges lead to words within three words. The paper's"
        " graphs are of citations and of proteins.",
        "A text is the mean of its words' states, 64 numbers each, which the task's layer reads; in the paper the last"
        " heads score the classes of each node.",
        "Sizes, rate and penalty are those for Pubmed, the one citation graph with several heads in the last layer.",
        "As in the paper's equations: the authors' code adds biases and drops W h once more.",
        "Batches of 64 texts, and as many passes over them as other recipes make; the paper steps on the whole graph.",
    ),
)
class GraphAttentionNetwork(TextEncoder):
    """Two layers of attention over the neighbours in the text's graph, and the mean over the words.

    The first layer joins its ``heads`` of ``hidden`` units and applies ELU; the second is the
    average of ``last_heads`` of ``last_hidden`` units. How often two words stand near each other
    does not count.
    """

    view = WordGraphs()

    def __init__(
        self,
        width: int,
        hidden: int = 8,
        heads: int = 8,
        last_hidden: int = 64,
        last_heads: int = 8,
        dropout: float = 0.6,
    ):
        super().__init__()
        self.first = GraphAttention(width, hidden, heads, dropout)
        self.last = GraphAttention(heads * hidden, last_hidden, last_heads, dropout)
        self.size = last_hidden

    def forward(self, graphs: GraphBatch) -> Tensor:
        counts = graphs.adjacency()
        edges = (counts > 0) | torch.eye(counts.shape[-1], dtype=torch.bool, device=counts.device)
        joined = F.elu(self.first(graphs.vectors, edges).transpose(1, 2).flatten(2))
        return pool(self.last(joined, edges).mean(1), graphs.mask, "mean")
