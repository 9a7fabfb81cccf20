"""Deep structured semantic model."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.ranking import sampled_softmax_loss
from harness.kinds import PairEncoder
from harness.registry import Recipe, register
from harness.views.bag import LetterTrigrams, TrigramBatch


class Tower(nn.Module):
    """Counted letter trigrams through three tanh layers: (B, ``output``). The first layer's weight
    is the table of the trigrams' vectors.

    A text without known trigrams leaves the biases.
    """

    def __init__(self, trigrams: int, hidden: int, output: int):
        super().__init__()
        self.table = nn.EmbeddingBag(trigrams, hidden, mode="sum")
        self.bias = nn.Parameter(torch.zeros(hidden))
        self.layers = nn.Sequential(nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, output), nn.Tanh())
        for layer in (self.table, self.layers[0], self.layers[2]):
            nn.init.xavier_uniform_(layer.weight)

    def forward(self, text: TrigramBatch) -> Tensor:
        summed = self.table(text.ids, text.offsets, per_sample_weights=text.weights)
        return self.layers(torch.tanh(summed + self.bias))


@register(
    "dssm",
    name="DSSM",
    kind="pair",
    paper="Huang et al. 2013",
    source="M2.8[113]",
    year=2013,
    recipe=Recipe(optimizer="sgd", lr=0.1, batch_size=1024),
    tiny={"hidden": 32, "output": 16},
    deviations=(
        "The paper names no learning rate and tunes gamma on held-out data: 0.1 and 10 are ours.",
        "Negatives are drawn from the wrong candidates of the same question, not from all documents.",
    ),
)
class DSSM(PairEncoder):
    """The cosine of two texts' vectors, made from their letter trigrams by tanh layers of 300, 300
    and 128 units.

    Trained by the softmax of gamma * cosine over a right candidate and ``negatives`` drawn wrong
    ones. One tower reads both texts, or each has its own (``shared`` false).
    """

    view = LetterTrigrams()
    scores = True
    whole_groups = True

    def __init__(
        self,
        width: int,
        hidden: int = 300,
        output: int = 128,
        gamma: float = 10.0,
        negatives: int = 4,
        shared: bool = True,
    ):
        super().__init__()
        self.gamma, self.negatives = gamma, negatives
        self.query = Tower(width, hidden, output)
        self.document = self.query if shared else Tower(width, hidden, output)

    def forward(self, first: TrigramBatch, second: TrigramBatch) -> Tensor:
        return F.cosine_similarity(self.query(first), self.document(second))

    def rank_loss(self, scores: Tensor, labels: Tensor, groups: Tensor) -> Tensor:
        return sampled_softmax_loss(self.gamma * scores, labels, groups, self.negatives)
