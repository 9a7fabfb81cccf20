"""Bi-directional attention matching."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.blocks.bi_attention import Similarity
from architectures.blocks.recurrent import Recurrent
from harness.kinds import PairEncoder, pool
from harness.layers.attention import masked_softmax
from harness.registry import register
from harness.views.words import WordBatch


@register(
    "co_attention",
    name="Bi-directional attention matching",
    kind="pair",
    paper="Zhang & Teng ch. 16.2.1",
    source="Z16.2.1",
    year=2020,
    tiny={"hidden": 12},
    deviations=(
        (
            "The source leaves the shared encoder, all sizes and the training open: a BiLSTM of 100 units each way, a"
            " ReLU layer of 100, Adam."
        ),
        (
            "The source joins the states of both texts with products that have other lengths; each state is joined with"
            " the states that it attends to."
        ),
    ),
)
class CoAttention(PairEncoder):
    """Each state of a text joined with what it attends to in the other, by one matrix of trilinear
    similarities; mean and maximum of both sides, one layer.

    S_ij = V . [h1_i; h2_j; h1_i * h2_j] is normalised over j for the first text and over i for the
    second: U1 = [H1; softmax_j(S) H2], U2 = [H2; softmax_i(S)^T H1]. The vector (B, ``hidden``) is
    the hidden layer of the perceptron on [mean U1; max U1; mean U2; max U2].
    """

    def __init__(self, width: int, hidden: int = 100):
        super().__init__()
        self.encoding = Recurrent("lstm", width, hidden, bidirectional=True)
        self.similarity = Similarity(self.encoding.size)
        self.hidden = nn.Linear(8 * self.encoding.size, hidden)
        self.size = hidden

    def forward(self, first: WordBatch, second: WordBatch) -> Tensor:
        h1, h2 = self.encoding(first.vectors, first.mask), self.encoding(second.vectors, second.mask)
        similarity = self.similarity(h1, h2)
        of_second = masked_softmax(similarity, second.mask[:, None]) @ h2
        of_first = masked_softmax(similarity.transpose(1, 2), first.mask[:, None]) @ h1
        u1, u2 = torch.cat([h1, of_second], dim=-1), torch.cat([h2, of_first], dim=-1)
        pooled = [pool(u, text.mask, how) for u, text in ((u1, first), (u2, second)) for how in ("mean", "max")]
        return torch.relu(self.hidden(torch.cat(pooled, dim=1)))
