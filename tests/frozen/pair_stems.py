"""Two texts as means of the vectors of their words' stems."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from harness.kinds import PairEncoder, pool
from harness.registry import Recipe, register
from harness.views.words import WordBatch, Words


@dataclass
class Stems(Words):
    """The first ``letters`` letters of each word."""

    letters: int = 6

    def form(self, word: str) -> str:
        return super().form(word)[: self.letters]


def mean(words: WordBatch) -> Tensor:
    """Mean vector (B, D) of the words of each text."""
    return pool(words.vectors, words.mask, "mean")


@register(
    "frozen_stems",
    name="Stems, compared",
    kind="pair",
    paper="Nobody 2015",
    source="equation 1",
    year=2015,
    recipe=Recipe(optimizer="adamax", lr=0.002, batch_size=32, epochs=12),
    tiny={"hidden": 32},
)
class ComparedStems(PairEncoder):
    """A hidden layer reads u, v, |u - v| and u * v."""

    view = Stems(min_count=1)

    def __init__(self, width: int, hidden: int = 100):
        super().__init__()
        self.hidden = nn.Sequential(nn.Linear(4 * width, hidden), nn.ReLU())
        self.size = hidden

    def forward(self, first: WordBatch, second: WordBatch) -> Tensor:
        u, v = mean(first), mean(second)
        return self.hidden(torch.cat([u, v, (u - v).abs(), u * v], dim=1))


@register(
    "frozen_stems_cosine",
    name="Stems, cosine",
    kind="pair",
    paper="Nobody 2016",
    source="equation 5",
    year=2016,
    recipe=Recipe(optimizer="sgd", lr=0.1, batch_size=64),
    tiny={"size": 16},
)
class StemsCosine(PairEncoder):
    """The cosine of two texts; the loss is a softmax over all candidates of a question."""

    view = Stems(letters=8, min_count=1)
    scores = True
    whole_groups = True

    def __init__(self, width: int, size: int = 50, sharpness: float = 5.0):
        super().__init__()
        self.sharpness = sharpness
        self.project = nn.Linear(width, size)

    def forward(self, first: WordBatch, second: WordBatch) -> Tensor:
        return F.cosine_similarity(self.project(mean(first)), self.project(mean(second)))

    def rank_loss(self, scores: Tensor, labels: Tensor, groups: Tensor) -> Tensor:
        beside = groups[:, None] == groups
        among = (self.sharpness * scores).expand_as(beside).masked_fill(~beside, -torch.inf)
        return -(self.sharpness * scores - among.logsumexp(1))[labels == 1].mean()
