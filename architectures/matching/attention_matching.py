"""Attention matching network."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.blocks.recurrent import Recurrent
from harness.kinds import PairEncoder, pool
from harness.layers.attention import AdditiveAttention
from harness.registry import register
from harness.views.words import WordBatch


@register(
    "attention_matching",
    name="Attention matching network",
    kind="pair",
    paper="Zhang & Teng ch. 16.2.1",
    source="Z16.2.1",
    year=2020,
    tiny={"hidden": 12, "attention": 12},
    deviations=(
        (
            "The source leaves the shared encoder, all sizes and the training open: a BiLSTM of 100 units each way,"
            " layers of 100, Adam."
        ),
        "One set of attention weights serves both directions, with the texts swapped; the source does not say.",
    ),
)
class AttentionMatching(PairEncoder):
    """Each state of a text joined with the other text's states that it attends to; mean and maximum
    of both sides, one layer.

    The weights of h1_i over the other text are softmax_j(v . tanh(W1 h1_i + W2 h2_j + b)): Q1_i =
    [h1_i; h^1_i], and Q2 likewise. The vector (B, ``hidden``) is the hidden layer of the MLP on
    [mean Q1; max Q1; mean Q2; max Q2].
    """

    def __init__(self, width: int, hidden: int = 100, attention: int = 100):
        super().__init__()
        self.encoding = Recurrent("lstm", width, hidden, bidirectional=True)
        self.attention = AdditiveAttention(self.encoding.size, self.encoding.size, attention)
        self.hidden = nn.Linear(8 * self.encoding.size, hidden)
        self.size = hidden

    def matched(self, own: Tensor, own_mask: Tensor, other: Tensor, other_mask: Tensor) -> Tensor:
        """Mean and maximum over one text's states, each beside what it attends to in the other: (B,
        8 * hidden)."""
        joined = torch.cat([own, self.attention(own, other, other_mask)], dim=-1)
        return torch.cat([pool(joined, own_mask, "mean"), pool(joined, own_mask, "max")], dim=1)

    def forward(self, first: WordBatch, second: WordBatch) -> Tensor:
        h1, h2 = self.encoding(first.vectors, first.mask), self.encoding(second.vectors, second.mask)
        u1 = self.matched(h1, first.mask, h2, second.mask)
        u2 = self.matched(h2, second.mask, h1, first.mask)
        return torch.relu(self.hidden(torch.cat([u1, u2], dim=1)))
