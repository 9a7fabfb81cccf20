"""Multiway attention network."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.blocks.recurrent import Recurrent
from harness.kinds import PairEncoder
from harness.layers.attention import AdditiveAttention, masked_softmax
from harness.registry import Recipe, register
from harness.views.words import WordBatch


class Attention(nn.Module):
    """Base of the passage's attentions: p (B, T, size), q (B, U, size), mask of q -> the mean of q
    that each p_t attends to."""

    def scores(self, p: Tensor, q: Tensor) -> Tensor:
        """Score of each q_j for each p_t: (B, T, U)."""
        raise NotImplementedError

    def forward(self, p: Tensor, q: Tensor, mask: Tensor) -> Tensor:
        return masked_softmax(self.scores(p, q), mask[:, None]) @ q


class BilinearAttention(Attention):
    """q_j W p_t."""

    def __init__(self, size: int):
        super().__init__()
        self.weight = nn.Linear(size, size, bias=False)

    def scores(self, p: Tensor, q: Tensor) -> Tensor:
        return self.weight(p) @ q.transpose(1, 2)


class DotAttention(Attention):
    """v . tanh(W (q_j * p_t))."""

    def __init__(self, size: int, hidden: int):
        super().__init__()
        self.weight, self.score = nn.Linear(size, hidden, bias=False), nn.Linear(hidden, 1, bias=False)

    def scores(self, p: Tensor, q: Tensor) -> Tensor:
        return self.score(torch.tanh(self.weight(q[:, None] * p[:, :, None]))).squeeze(-1)


class MinusAttention(DotAttention):
    """v . tanh(W (q_j - p_t)); W is linear, so that it may act before the difference."""

    def scores(self, p: Tensor, q: Tensor) -> Tensor:
        return self.score(torch.tanh(self.weight(q)[:, None] - self.weight(p)[:, :, None])).squeeze(-1)


class Aggregation(nn.Module):
    """Each word beside what it attended to, gated coordinate by coordinate, and read by a BiGRU:
    (B, T, 2 * hidden)."""

    def __init__(self, size: int, hidden: int):
        super().__init__()
        self.gate = nn.Linear(size, size, bias=False)
        self.recurrence = Recurrent("gru", size, hidden, bidirectional=True)

    def forward(self, attended: Tensor, p: Tensor, mask: Tensor) -> Tensor:
        joined = torch.cat([attended, p], dim=-1)
        return self.recurrence(torch.sigmoid(self.gate(joined)) * joined, mask)


class LearnedQuery(nn.Module):
    """Pools vectors (N, K, size) by additive attention whose query is a learned vector: (N,
    size)."""

    def __init__(self, size: int, hidden: int):
        super().__init__()
        self.query = nn.Parameter(torch.randn(1, 1, hidden) * 0.1)
        self.attention = AdditiveAttention(hidden, size, hidden)

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        return self.attention(self.query, vectors, mask).squeeze(1)


@register(
    "mwan",
    name="Multiway attention network",
    kind="pair",
    paper="Tan et al. 2018",
    source="M2.5[87] T5",
    year=2018,
    recipe=Recipe(optimizer="adadelta", lr=1.0, rho=0.95, batch_size=32),
    tiny={"hidden": 10},
    vectors_of_paper="GloVe",
    deviations=(
        "No contextual vectors stand beside the word vectors.",
        "One BiGRU encodes both texts; re-implementations give each its own.",
        "PyTorch's GRU resets the state behind the recurrent matrix; additive scores have a bias.",
        "Dropout of 0.2 and the batch size are a re-implementation's; the hidden layer's size and ReLU are ours.",
    ),
)
class MultiwayAttention(PairEncoder):
    """Four attentions of the passage over the question, each gated and aggregated by its own BiGRU,
    then mixed word by word.

    The first text is the question q, the second the passage p; concat, bilinear, dot and minus
    attention score each q_j for each p_t. Attention over the four aggregations of a word mixes
    them, and another BiGRU reads the mixture. Attention with a learned query pools the
    question, and attention with the question's vector as its query pools the passage; one
    hidden layer follows: (B, ``hidden``). Dropout acts on what each BiGRU but the aggregating
    ones reads, on the states of both texts, and on what the hidden layer reads. Slow, because
    three of the four scores pass a hidden layer for every pair of words, and a pair takes seven
    passes of a BiGRU.
    """

    def __init__(self, width: int, hidden: int = 150, dropout: float = 0.2):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.encoding = Recurrent("gru", width, hidden, bidirectional=True)
        size = self.encoding.size
        self.attentions = nn.ModuleList(
            [
                AdditiveAttention(size, size, hidden),
                BilinearAttention(size),
                DotAttention(size, hidden),
                MinusAttention(size, hidden),
            ]
        )
        self.aggregations = nn.ModuleList(Aggregation(2 * size, hidden) for _ in self.attentions)
        self.mix = LearnedQuery(size, hidden)
        self.recurrence = Recurrent("gru", size, hidden, bidirectional=True)
        self.question = LearnedQuery(size, hidden)
        self.passage = AdditiveAttention(size, size, hidden)
        self.output = nn.Linear(size, hidden)
        self.size = hidden

    def mixed(self, aggregated: Tensor) -> Tensor:
        """Each word's four aggregations (B, T, 4, size) as one vector (B, T, size), weighted by
        attention."""
        ways = aggregated.flatten(0, 1)
        return self.mix(ways, ways.new_ones(ways.shape[:2], dtype=torch.bool)).unflatten(0, aggregated.shape[:2])

    def forward(self, first: WordBatch, second: WordBatch) -> Tensor:
        q = self.dropout(self.encoding(self.dropout(first.vectors), first.mask))
        p = self.dropout(self.encoding(self.dropout(second.vectors), second.mask))
        attended = [attention(p, q, first.mask) for attention in self.attentions]
        aggregated = [aggregate(x, p, second.mask) for aggregate, x in zip(self.aggregations, attended, strict=True)]
        states = self.recurrence(self.dropout(self.mixed(torch.stack(aggregated, dim=2))), second.mask)
        asked = self.question(q, first.mask)
        answered = self.passage(asked[:, None], states, second.mask).squeeze(1)
        return torch.relu(self.output(self.dropout(answered)))
