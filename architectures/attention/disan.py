"""Directional self-attention network."""

from __future__ import annotations

import math
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from harness.kinds import SequenceEncoder
from harness.layers.attention import masked_softmax
from harness.registry import Recipe, register

QUERIES = 4
"""Positions that attend at a time: their weights, a number for each key and feature, are all that
is held at once."""

LONG = 64
"""Positions of a text above which the weights are computed again in the backward pass and not
kept."""


def attended(queries: Tensor, keys: Tensor, values: Tensor, allowed: Tensor, scale: float) -> Tensor:
    """Means (B, Q, d) of the values (B, K, d) under softmax_i(c tanh((query_j + key_i) / c)), which
    is taken for each feature alone.

    A query j that ``allowed`` (B, Q, K) lets see nothing gets zeros. The scores lie between -c and
    c: no maximum need be subtracted, and the weights of one key or more sum to e^-c at least.
    """
    scores = scale * torch.tanh(queries[:, :, None] / scale + keys[:, None] / scale)
    weights = scores.exp() * allowed[..., None]
    return (weights * values[:, None]).sum(2) / weights.sum(2).clamp(min=math.exp(-scale))


class DirectionalAttention(nn.Module):
    """Each token joined with the attended tokens on one side of it, by a gate: (B, T, width) -> (B,
    T, hidden).

    h = elu(W x + b) maps the tokens; s_j attends over the h_i with i < j (``forwards``) or i > j,
    never over itself; the gate F = sigmoid(W_s s + W_h h + b) gives u = F * h + (1 - F) * s. The
    first (last) token sees nothing, its s is zero.
    """

    def __init__(self, width: int, hidden: int, forwards: bool, scale: float, dropout: float):
        super().__init__()
        self.forwards, self.scale = forwards, scale
        self.map = nn.Linear(width, hidden)
        self.key = nn.Linear(hidden, hidden, bias=False)
        self.query = nn.Linear(hidden, hidden)
        self.gate_attended = nn.Linear(hidden, hidden, bias=False)
        self.gate_token = nn.Linear(hidden, hidden)
        self.dropout = nn.Dropout(dropout)

    def allowed(self, mask: Tensor) -> Tensor:
        """True (B, T, T) where token j (row) sees token i (column)."""
        pairs = torch.ones(mask.shape[1], mask.shape[1], dtype=torch.bool, device=mask.device)
        return (pairs.tril(-1) if self.forwards else pairs.triu(1)) & mask[:, None]

    def attention(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """s (B, T, hidden) of the mapped tokens h."""
        length = tokens.shape[1]
        dropped = self.dropout(tokens)
        queries, keys, allowed = self.query(dropped), self.key(dropped), self.allowed(mask)
        attend = (
            partial(checkpoint, attended, use_reentrant=False, preserve_rng_state=False) if length > LONG else attended
        )
        blocks = []
        for start in range(0, length, QUERIES):
            rows = slice(start, start + QUERIES)
            # Keys on the side that none of these queries looks at are left out, which halves the
            # work.
            seen = slice(0, start + QUERIES) if self.forwards else slice(start, length)
            blocks.append(attend(queries[:, rows], keys[:, seen], tokens[:, seen], allowed[:, rows, seen], self.scale))
        return torch.cat(blocks, dim=1)

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        tokens = F.elu(self.map(self.dropout(vectors)))
        return self.fused(tokens, self.attention(tokens, mask))

    def fused(self, tokens: Tensor, context: Tensor) -> Tensor:
        """u (B, T, hidden) of the mapped tokens h and what they attend to, s."""
        gate = torch.sigmoid(self.gate_attended(self.dropout(context)) + self.gate_token(self.dropout(tokens)))
        return gate * tokens + (1 - gate) * context


class Source2Token(nn.Module):
    """Mean of the states under softmax_t(W2 elu(W1 u_t + b1) + b2), which is taken for each feature
    alone: (B, T, size) -> (B, size)."""

    def __init__(self, size: int, dropout: float):
        super().__init__()
        self.scores = nn.Sequential(
            nn.Dropout(dropout), nn.Linear(size, size), nn.ELU(), nn.Dropout(dropout), nn.Linear(size, size)
        )

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        return (masked_softmax(self.scores(states), mask[..., None], dim=1) * states).sum(1)


@register(
    "disan",
    name="DiSAN",
    kind="seq",
    paper="Shen et al. 2018",
    source="M2.5[81] T5",
    year=2018,
    recipe=Recipe(
        optimizer="adadelta",
        lr=0.5,
        rho=0.95,
        eps=1e-8,
        batch_size=64,
        weight_decay=0.00005,
        decay_exempt=("biases", "vectors"),
    ),
    tiny={"hidden": 12},
    vectors_of_paper="GloVe",
    version=2,
    deviations=(
        "Matching joins [u, v, |u-v|, u*v]; the paper takes the plain difference.",
        (
            "The vector of a single text is scored by one linear layer; in the authors' code for SST a layer of ReLU"
            " units stands between, and dropout before both."
        ),
        (
            "Where no vector of the text is asked for (tagging, reading, speech) the states stand without source2token"
            " attention."
        ),
    ),
)
class DiSAN(SequenceEncoder):
    """Attention with a weight for each feature, over the words before and over the words behind
    each word, and neither RNN nor CNN.

    States (B, T, 2 * hidden) are those of the two directions, joined; a text's vector is their
    source2token attention. The weights of all pairs of words in every feature, T * T * hidden
    numbers per text and direction, make it slow: time grows with the square of the length times
    ``hidden``, where other attention pays the square alone. Memory does not, as few queries attend
    at a time.
    """

    # Tasks that label or find words need no vector of the text.
    unused = ("source2token",)

    def __init__(self, width: int, hidden: int = 300, scale: float = 5.0, dropout: float = 0.25):
        super().__init__()
        self.forwards = DirectionalAttention(width, hidden, True, scale, dropout)
        self.backwards = DirectionalAttention(width, hidden, False, scale, dropout)
        self.size = 2 * hidden
        self.source2token = Source2Token(self.size, dropout)

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        return torch.cat([self.forwards(vectors, mask), self.backwards(vectors, mask)], dim=-1)

    def pooled(self, states: Tensor, mask: Tensor) -> Tensor:
        return self.source2token(states, mask)
