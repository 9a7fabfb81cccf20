"""Label-embedding attentive model."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from harness.kinds import TextEncoder
from harness.layers.attention import masked_softmax
from harness.registry import Recipe, register
from harness.views.words import WordBatch


@register(
    "leam",
    name="LEAM",
    kind="text",
    paper="Wang et al. 2018",
    source="M2.5[84] T2",
    year=2018,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=100),
    tiny={"hidden": 16, "window": 5},
    vectors_of_paper="GloVe",
    deviations=(
        "Label vectors start at random, not from the words of the labels' names.",
        "One filter slides over every label's row, as the paper says; the authors' code also mixes the labels.",
    ),
)
class LabelEmbeddingAttention(TextEncoder):
    """Words near a label in the space that both share weigh more in the mean of the word vectors:
    words (B, T) to scores (B, classes).

    G = cosine of each label and word, u = relu(filter over a window of G + b) for each label,
    weights = softmax over the words of the maximum of u over the labels; two layers score the
    weighted mean. As a regulariser the same layers must give each label's vector its own class.
    Dropout acts before both layers, as in the authors' code.
    ``window`` is 2r + 1 words; zeros stand for those beyond the text.
    """

    def __init__(
        self,
        width: int,
        classes: int,
        hidden: int = 300,
        window: int = 55,
        dropout: float = 0.5,
        regulariser: float = 1.0,
    ):
        super().__init__()
        if window % 2 == 0:
            raise ValueError(f"leam: window={window} has no word in its middle; it must be odd")
        self.regulariser = regulariser
        self.labels = nn.Parameter(torch.empty(classes, width).uniform_(-0.25, 0.25))
        self.filter = nn.Conv1d(1, 1, window, padding=window // 2, bias=False)
        self.bias = nn.Parameter(torch.zeros(classes, 1))
        first = (nn.Dropout(dropout), nn.Linear(width, hidden), nn.ReLU())
        self.classifier = nn.Sequential(*first, nn.Dropout(dropout), nn.Linear(hidden, classes))

    def compatibility(self, words: WordBatch) -> Tensor:
        """G (B, classes, T): the cosine of each label's vector and each word's; zero at padding."""
        cosines = F.normalize(self.labels, dim=-1) @ F.normalize(words.vectors, dim=-1).transpose(1, 2)
        return cosines * words.mask[:, None]

    def weights(self, words: WordBatch) -> Tensor:
        """Attention (B, T), summing to one over the words."""
        compatibility = self.compatibility(words)
        phrases = self.filter(compatibility.flatten(0, 1)[:, None]).view_as(compatibility)
        return masked_softmax(torch.relu(phrases + self.bias).amax(1), words.mask)

    def forward(self, words: WordBatch) -> Tensor:
        self.add_loss("regulariser", self.regulariser * self.label_loss())
        return self.classifier((self.weights(words)[:, None] @ words.vectors).squeeze(1))

    def label_loss(self) -> Tensor:
        """Mean cross-entropy of the labels' vectors and their own classes."""
        own = torch.arange(len(self.labels), device=self.labels.device)
        return F.cross_entropy(self.classifier(self.labels), own)
