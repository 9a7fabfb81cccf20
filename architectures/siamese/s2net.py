"""Similarity learning via siamese neural network."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from harness.kinds import PairEncoder
from harness.registry import Recipe, register
from harness.views.bag import END, Bag, BagBatch


@register(
    "s2net",
    name="S2Net",
    kind="pair",
    paper="Yih et al. 2011",
    source="M2.8[112]",
    year=2011,
    recipe=Recipe(lr=0.001, batch_size=64),
    tiny={"dimensions": 32},
    deviations=(
        "Trained by Adam in batches of whole questions, not by L-BFGS on all pairs at once.",
        "The projection starts from small random numbers, not from latent semantic analysis.",
        "idf counts how often a word occurs in training, not in how many texts.",
        "The number of dimensions, 300, is our choice: the paper compares several.",
    ),
)
class S2Net(PairEncoder):
    """The cosine of two texts' TF-IDF vectors x after one linear projection y = A x: a score (B,).

    Trained by the mean of log(1 + exp(-gamma * (s_right - s_wrong))) over all pairs of a right and
    a wrong candidate of the same question. A word's idf is log(texts / occurrences), and 0 for
    words that occur more than once a text. A text without any other known word has the zero vector
    and scores 0.
    """

    view = Bag(ngrams=1)
    scores = True
    whole_groups = True

    def __init__(self, width: int, view: Bag, dimensions: int = 300, gamma: float = 10.0):
        super().__init__()
        self.gamma = gamma
        self.projection = nn.EmbeddingBag(width, dimensions, mode="sum")
        nn.init.normal_(self.projection.weight, std=dimensions**-0.5)
        counts = torch.tensor(view.vocabulary.row_counts(absent=1), dtype=torch.float)
        texts = counts[view.vocabulary.ids([END])]  # each has one end
        self.register_buffer("idf", (texts / counts).log().clamp(min=0))

    def projected(self, text: BagBatch) -> Tensor:
        """y = A x (B, dimensions): the sum over the words of idf times the word's column of A."""
        return self.projection(text.ids, text.offsets, per_sample_weights=self.idf[text.ids])

    def forward(self, first: BagBatch, second: BagBatch) -> Tensor:
        q, d = (F.normalize(self.projected(text)) for text in (first, second))
        return (q[:, None] @ d[:, :, None]).flatten()

    def rank_loss(self, scores: Tensor, labels: Tensor, groups: Tensor) -> Tensor:
        pairs = (groups[:, None] == groups) & (labels == 1)[:, None] & (labels == 0)
        losses = F.softplus(-self.gamma * (scores[:, None] - scores))
        return (losses * pairs).sum() / pairs.sum().clamp(min=1)
