"""Words as the nodes of a graph whose edges are attention, computed anew in every layer."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.recurrent import Recurrent
from harness.kinds import SequenceEncoder, pool
from harness.layers.attention import masked_softmax
from harness.registry import Recipe, register


@register(
    "cnln",
    name="Contextualised non-local network",
    kind="seq",
    paper="Liu et al. 2019",
    source="M2.7[110]",
    year=2019,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=64),
    tiny={"hidden": 12, "dropout": 0.0},
    vectors_of_paper="GloVe",
    deviations=(
        "The equations are our reading of the abstract; no code or settings of the authors are known to us.",
        (
            "Nodes start as the states of a BiLSTM, an edge is a scaled product of two linear maps, and a gate mixes a"
            " node with what it hears."
        ),
        "One virtual node for a text starts as the mean of its words' states and is read by no task.",
        "The maximum over the words is a text's vector.",
    ),
)
class ContextualizedNonLocal(SequenceEncoder):
    """Messages along all pairs of words, in ``layers`` rounds with the same weights: states (B, T,
    ``size``).

    Node i starts as the state h_i of a BiLSTM over the words, its local context, and one node more,
    joined to all, as their mean. In each round the edges alpha_ij = softmax_j(q_i . k_j /
    sqrt(size)) are found anew, m_i = sum_j alpha_ij v_j, z_i = sigmoid(W [h_i; m_i] + b), and h_i
    becomes z_i * tanh(U [h_i; m_i] + c) + (1 - z_i) * h_i. Dropout acts on the words and on the
    messages.
    """

    def __init__(self, width: int, hidden: int = 150, layers: int = 2, dropout: float = 0.2):
        super().__init__()
        self.layers = layers
        self.context = Recurrent("lstm", width, hidden, bidirectional=True)
        self.size = self.context.size
        self.queries, self.keys, self.values = (nn.Linear(self.size, self.size, bias=False) for _ in range(3))
        self.gate = nn.Linear(2 * self.size, self.size)
        self.candidate = nn.Linear(2 * self.size, self.size)
        self.dropout = nn.Dropout(dropout)

    def edges(self, nodes: Tensor, mask: Tensor) -> Tensor:
        """alpha (B, N, N), each row summing to one over the real nodes."""
        scores = self.queries(nodes) @ self.keys(nodes).transpose(1, 2) / math.sqrt(self.size)
        return masked_softmax(scores, mask[:, None])

    def update(self, nodes: Tensor, messages: Tensor) -> Tensor:
        """Nodes (B, N, size) after they have heard their messages."""
        joined = torch.cat([nodes, messages], dim=-1)
        return torch.lerp(nodes, torch.tanh(self.candidate(joined)), torch.sigmoid(self.gate(joined)))

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        words = self.context(self.dropout(vectors), mask)
        nodes = torch.cat([pool(words, mask, "mean")[:, None], words], dim=1)
        real = F.pad(mask, (1, 0), value=True)
        for _ in range(self.layers):
            messages = self.edges(nodes, real) @ self.values(nodes)
            nodes = self.update(nodes, self.dropout(messages))
        return nodes[:, 1:]
