"""Bidirectional LSTM with inner attention."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.blocks.recurrent import Recurrent
from harness.kinds import TextEncoder, pool
from harness.layers.attention import masked_softmax
from harness.registry import Recipe, register
from harness.views.words import WordBatch


@register(
    "inner_attention",
    name="BiLSTM with inner attention",
    kind="text",
    paper="Liu et al. 2016",
    source="M2.5[82]",
    year=2016,
    recipe=Recipe(optimizer="rmsprop", lr=0.001, alpha=0.9, batch_size=128),
    tiny={"hidden": 12},
    vectors_of_paper="GloVe",
    version=2,
    deviations=(
        "The word vectors are tuned.",
        "Matching joins [u, v, |u-v|, u*v] and has a hidden layer; the paper takes the plain difference, and softmax.",
    ),
)
class InnerAttention(TextEncoder):
    """A text attends over its own BiLSTM states Y, asked by their mean: words (B, T) to a vector
    (B, 2 * hidden).

    M = tanh(W_y Y + W_h mean(Y)), weights = softmax(w . M), r = the weighted mean of Y. Dropout
    acts on the word vectors and on r.
    """

    def __init__(self, width: int, hidden: int = 300, dropout: float = 0.25):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.recurrence = Recurrent("lstm", width, hidden, bidirectional=True)
        self.size = self.recurrence.size
        self.state = nn.Linear(self.size, self.size, bias=False)
        self.mean = nn.Linear(self.size, self.size, bias=False)
        self.score = nn.Linear(self.size, 1, bias=False)

    def weights(self, states: Tensor, mask: Tensor) -> Tensor:
        """Attention (B, T) of the text over its own states, summing to one over its words."""
        joint = torch.tanh(self.state(states) + self.mean(pool(states, mask, "mean"))[:, None])
        return masked_softmax(self.score(joint).squeeze(-1), mask)

    def forward(self, words: WordBatch) -> Tensor:
        states = self.recurrence(self.dropout(words.vectors), words.mask)
        return self.dropout((self.weights(states, words.mask)[:, None] @ states).squeeze(1))
