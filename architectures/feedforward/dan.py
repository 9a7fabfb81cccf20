"""Deep averaging network."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

from harness.kinds import TextEncoder, pool
from harness.registry import Recipe, register
from harness.views.words import WordBatch


@register(
    "dan",
    name="Deep Averaging Network",
    kind="text",
    paper="Iyyer et al. 2015",
    source="M2.1[29]",
    year=2015,
    recipe=Recipe(optimizer="adagrad", lr=0.005, batch_size=15, epochs=5, weight_decay=6.667e-06, eps=0.001),
    tiny={"hidden": 16},
    vectors_of_paper="GloVe",
    version=2,
    deviations=("Layers start as PyTorch's do, not uniform in +-0.08 as in the authors' code.",),
)
class DeepAveragingNetwork(TextEncoder):
    """Mean of the word vectors that word dropout leaves, then feed-forward layers with ReLU.

    In training each word is dropped as a whole with probability ``word_dropout``; the mean is over
    the words that remain, so nothing is rescaled. A text that would lose every word keeps them all.
    ReLU is the choice of the authors' code, as the paper leaves it open. Theirs adds an L2 penalty
    of 0.0001 to the sum over 15 texts: a fifteenth of it stands beside the mean.
    """

    def __init__(self, width: int, hidden: int = 300, layers: int = 3, word_dropout: float = 0.3):
        super().__init__()
        self.word_dropout = word_dropout
        widths = [width] + [hidden] * layers
        self.layers = nn.Sequential(*(nn.Sequential(nn.Linear(a, b), nn.ReLU()) for a, b in pairwise(widths)))
        self.size = widths[-1]

    def kept(self, mask: Tensor) -> Tensor:
        """The words (B, T) that enter the mean: all of them outside training."""
        if not self.training:
            return mask
        kept = mask & (torch.rand(mask.shape, device=mask.device) >= self.word_dropout)
        return torch.where(kept.any(1, keepdim=True), kept, mask)

    def forward(self, words: WordBatch) -> Tensor:
        return self.layers(pool(words.vectors, self.kept(words.mask), "mean"))
