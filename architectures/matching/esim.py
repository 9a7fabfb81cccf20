"""Enhanced sequential inference model."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.blocks.recurrent import Recurrent
from harness.kinds import PairEncoder, pool
from harness.layers.attention import masked_softmax
from harness.registry import Recipe, register
from harness.views.words import WordBatch


@register(
    "esim",
    name="ESIM",
    kind="pair",
    paper="Chen et al. 2017",
    source="M-T5[4]",
    year=2017,
    recipe=Recipe(optimizer="adam", lr=0.0004, batch_size=32, patience=7, clip=10.0, lr_schedule="plateau"),
    tiny={"hidden": 16, "dropout": 0.2},
    vectors_of_paper="GloVe",
    deviations=(
        "Words are lower-cased, and those seen once are unknown.",
        "The rate is halved after an epoch that is not the best so far, and training goes on from there; the authors'"
        " program goes back to the best weights, and ends with the eighth such epoch of all.",
    ),
    variants={
        "esim_elmo": {
            "name": "ESIM + ELMo",
            "paper": "Peters et al. 2018",
            "year": 2018,
            "inputs": ("elmo_words",),
            "deviations": (
                "ELMo is our small one, and stands before the first BiLSTM alone, not before the second too.",
            ),
        },
    },
)
class ESIM(PairEncoder):
    """BiLSTM states of both texts, aligned by their products, compared, and read by a second
    BiLSTM: (B, ``hidden``).

    e_ij = a_i . b_j has no parameters; a~_i = sum_j softmax_j(e_ij) b_j, and b~_j likewise over i.
    Each position's [a; a~; a - a~; a * a~] is projected by a ReLU layer and composed; the mean and
    the maximum of both texts pass a tanh layer. The two texts share all weights. Dropout acts on
    what each BiLSTM, the tanh layer and the classifier read; the products and the ReLU layer read
    whole states. Slow, because either text passes two BiLSTMs of 300 units each way.
    """

    def __init__(self, width: int, hidden: int = 300, dropout: float = 0.5):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.encoding = Recurrent("lstm", width, hidden, bidirectional=True)
        self.projection = nn.Linear(4 * self.encoding.size, hidden)
        self.composition = Recurrent("lstm", hidden, hidden, bidirectional=True)
        self.output = nn.Linear(4 * self.composition.size, hidden)
        self.size = hidden

    def composed(self, states: Tensor, aligned: Tensor, mask: Tensor) -> Tensor:
        """Mean and maximum over one text of the composed comparisons of its states with what they
        are aligned to."""
        enhanced = torch.cat([states, aligned, states - aligned, states * aligned], dim=-1)
        composed = self.composition(self.dropout(torch.relu(self.projection(enhanced))), mask)
        return torch.cat([pool(composed, mask, "mean"), pool(composed, mask, "max")], dim=1)

    def forward(self, first: WordBatch, second: WordBatch) -> Tensor:
        a = self.encoding(self.dropout(first.vectors), first.mask)
        b = self.encoding(self.dropout(second.vectors), second.mask)
        scores = a @ b.transpose(1, 2)
        aligned_a = masked_softmax(scores, second.mask[:, None]) @ b
        aligned_b = masked_softmax(scores.transpose(1, 2), first.mask[:, None]) @ a
        pooled = torch.cat([self.composed(a, aligned_a, first.mask), self.composed(b, aligned_b, second.mask)], dim=1)
        return self.dropout(torch.tanh(self.output(self.dropout(pooled))))
