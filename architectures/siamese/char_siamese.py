"""Siamese recurrent network over characters."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.recurrent import Recurrent
from harness.kinds import PairEncoder, pool
from harness.registry import Recipe, register
from harness.views.characters import CharacterBatch, Characters


@register(
    "char_siamese",
    name="Siamese character BiLSTM",
    kind="pair",
    paper="Neculoiu et al. 2016",
    source="M2.8[120]",
    year=2016,
    recipe=Recipe(lr=0.001),
    tiny={"hidden": 16, "layers": 2, "output": 16, "dropout": 0.0},
    deviations=(
        "Dropout acts between the layers, not on the recurrent connections too.",
        "A wrong pair is pushed apart above the margin; the paper prints the condition the other way round.",
        "The margin, 0.5, and the size of the dense layer, 128, are unconfirmed.",
        "Pairs are those of the task: none are sampled or made from a taxonomy.",
        "Strings are read as they are; the paper puts each at a random place of 100 characters.",
    ),
)
class CharSiamese(PairEncoder):
    """The cosine E (B,) of two strings' vectors, each the dense layer above the mean state of a
    stack of BiLSTMs over its characters.

    Trained by (1 - E)^2 / 4 for a right pair, and for a wrong one E^2 where E is above ``margin``,
    else 0; mean over all pairs. Slow, because every character passes four layers.
    """

    view = Characters(length=None, reverse=False)
    scores = True

    def __init__(
        self,
        width: int,
        hidden: int = 64,
        layers: int = 4,
        output: int = 128,
        dropout: float = 0.4,
        margin: float = 0.5,
    ):
        super().__init__()
        self.margin = margin
        self.stack = Recurrent("lstm", width, hidden, layers, bidirectional=True, dropout=dropout)
        self.dense = nn.Linear(self.stack.size, output)

    def embedded(self, text: CharacterBatch) -> Tensor:
        """The vector (B, output) of each string."""
        return self.dense(pool(self.stack(text.vectors, text.mask), text.mask, "mean"))

    def forward(self, first: CharacterBatch, second: CharacterBatch) -> Tensor:
        return F.cosine_similarity(self.embedded(first), self.embedded(second))

    def rank_loss(self, scores: Tensor, labels: Tensor, groups: Tensor) -> Tensor:
        wrong = scores.square() * (scores > self.margin)
        return torch.where(labels == 1, (1 - scores).square() / 4, wrong).mean()
