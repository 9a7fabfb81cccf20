"""LSTM whose steps attend over all states and memory cells before them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from harness.kinds import SequenceEncoder
from harness.registry import Recipe, register


@register(
    "lstmn",
    name="Long short-term memory-network",
    kind="seq",
    paper="Cheng et al. 2016",
    source="M2.2[35]",
    year=2016,
    recipe=Recipe(optimizer="adam", lr=0.002, betas=(0.9, 0.999), batch_size=5, weight_decay=0.0001),
    tiny={"hidden": 16, "dropout": 0.0},
    vectors_of_paper="GloVe",
    deviations=(
        "One linear layer classifies the mean of the states, not two with ReLU; dropout acts on what it reads.",
        "The gradient is not cut; the authors' program for pairs of sentences cuts its norm at 5.",
        "Word vectors are tuned at the full rate from the start, not at 0.35 of it in the first epoch.",
        "Empty tapes and W_s are the paper's; in the authors' code tapes hold a zero item first, and no W_s is there.",
        "The L2 penalty takes all weights, biases and word vectors too; the paper does not say which ones its takes.",
    ),
)
class LongShortTermMemoryNetwork(SequenceEncoder):
    """Attention over tapes of past states and cells takes the place of the last one of each.

    At word t, a_i = v . tanh(W_h h_i + W_x x_t + W_s s_{t-1}) for each i < t, where s_{t-1} is what
    the step before attended to; the softmax of a sums the tapes to s_t and r_t. The gates i, f, o
    and the candidate read [s_t; x_t], c_t = f * r_t + i * candidate, h_t = o * tanh(c_t), and both
    join the tapes. The tapes are empty before the first word: s_1 and r_1 are zero. Equations 5 to
    10. Dropout acts on a text's vector. Slow, because no fused layer computes it and each word
    looks at all before it.
    """

    pooling = "mean"

    def __init__(self, width: int, hidden: int = 168, dropout: float = 0.5):
        super().__init__()
        self.state = nn.Linear(hidden, hidden, bias=False)
        self.word = nn.Linear(width, hidden)
        self.attended = nn.Linear(hidden, hidden, bias=False)
        self.score = nn.Linear(hidden, 1, bias=False)
        self.input = nn.Linear(width, 4 * hidden)
        self.recurrence = nn.Linear(hidden, 4 * hidden, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.size = hidden

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        summary = memory = vectors.new_zeros(len(vectors), self.size)
        states, cells, keys = [], [], []
        for asked, read in zip(self.word(vectors).unbind(1), self.input(vectors).unbind(1), strict=True):
            if states:
                query = asked + self.attended(summary)
                scores = self.score(torch.tanh(torch.stack(keys, dim=1) + query[:, None]))
                weights = torch.softmax(scores, dim=1).transpose(1, 2)
                summary = (weights @ torch.stack(states, dim=1)).squeeze(1)
                memory = (weights @ torch.stack(cells, dim=1)).squeeze(1)
            i, f, o, candidate = (read + self.recurrence(summary)).chunk(4, dim=1)
            cells.append(torch.sigmoid(f) * memory + torch.sigmoid(i) * torch.tanh(candidate))
            states.append(torch.sigmoid(o) * torch.tanh(cells[-1]))
            keys.append(self.state(states[-1]))
        return torch.stack(states, dim=1)

    def pooled(self, states: Tensor, mask: Tensor) -> Tensor:
        return self.dropout(super().pooled(states, mask))
