"""Siamese convolutional network for community question answering."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.pooling import halve
from harness.kinds import PairEncoder
from harness.registry import Recipe, register
from harness.views.characters import CharacterBatch, Characters


class Tower(nn.Module):
    """Characters of a text to its vector (B, ``output``): two stages of convolution, ReLU and max
    pooling, and a dense layer.

    The first pooling takes the maximum around every second position, the second one that of the
    whole text. Zeros stand before and behind the text, so that a stage keeps its length.
    """

    def __init__(self, alphabet: int, filters: int, window: int, output: int):
        super().__init__()
        self.first, self.second = (
            nn.Conv1d(size, filters, window, padding=window // 2) for size in (alphabet, filters)
        )
        self.dense = nn.Linear(filters, output)

    def forward(self, text: CharacterBatch) -> Tensor:
        maps, mask = halve(torch.relu(self.first(text.vectors.transpose(1, 2))), text.mask)
        maps = torch.relu(self.second(maps)).masked_fill(~mask[:, None], -torch.inf)
        return torch.tanh(self.dense(maps.amax(2)))


@register(
    "scqa",
    name="SCQA",
    kind="pair",
    paper="Das et al. 2016",
    source="M2.8[117]",
    year=2016,
    recipe=Recipe(lr=0.001, batch_size=100),
    tiny={"filters": 32, "output": 32},
    deviations=(
        "The network reads single characters, one-hot, where the paper has the letter trigrams of words; sizes,"
        " activations and the training by Adam are our choices.",
        "Pairs are a question and a candidate answer in test too; the paper then compares questions with questions.",
    ),
)
class SCQA(PairEncoder):
    """The cosine s (B,) of two texts' vectors, made from their characters by one convolutional
    network.

    Trained by a contrastive loss: 1 - s for a right pair, max(0, s - ``margin``) for a wrong one,
    mean over all pairs.
    """

    view = Characters(length=None, reverse=False)
    scores = True

    def __init__(self, width: int, filters: int = 128, window: int = 5, output: int = 128, margin: float = 0.5):
        super().__init__()
        self.margin = margin
        self.tower = Tower(width, filters, window, output)

    def forward(self, first: CharacterBatch, second: CharacterBatch) -> Tensor:
        return F.cosine_similarity(self.tower(first), self.tower(second))

    def rank_loss(self, scores: Tensor, labels: Tensor, groups: Tensor) -> Tensor:
        return torch.where(labels == 1, 1 - scores, torch.relu(scores - self.margin)).mean()
