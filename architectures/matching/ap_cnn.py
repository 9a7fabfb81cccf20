"""Attentive pooling over convolutions."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.attentive_pooling import AttentivePooling
from architectures.blocks.ranking import worst_negative_hinge_loss
from harness.kinds import PairEncoder
from harness.registry import Recipe, register
from harness.views.words import WordBatch


@register(
    "ap_cnn",
    name="Attentive pooling CNN",
    kind="pair",
    paper="dos Santos et al. 2016",
    source="M2.5[83] T4",
    year=2016,
    recipe=Recipe(optimizer="sgd", lr=1.1, lr_schedule="inverse_epoch", decay=1.0, batch_size=20, epochs=25),
    tiny={"filters": 24},
    deviations=("Negatives are drawn from the wrong candidates of the same question, not from all answers.",),
)
class AttentivePoolingCNN(PairEncoder):
    """The cosine of two texts' vectors, each pooled from its convolved words by attention to the
    other text.

    One convolution, without a non-linearity, reads windows of both texts and keeps their lengths: Q
    (B, M, filters) and A (B, L, filters). Trained by a hinge against the best scored of
    ``negatives`` drawn wrong candidates.
    """

    scores = True
    whole_groups = True

    def __init__(self, width: int, filters: int = 400, window: int = 3, negatives: int = 50, margin: float = 0.5):
        super().__init__()
        if window % 2 == 0:
            raise ValueError(
                f"ap_cnn.window={window}: must be odd, so that each word stands in the middle of its window"
            )
        self.negatives, self.margin = negatives, margin
        self.convolution = nn.Conv1d(width, filters, window, padding="same")
        self.pool = AttentivePooling(filters)

    def states(self, text: WordBatch) -> Tensor:
        """The convolved words (B, T, filters); beyond the text its neighbours are zero vectors."""
        words = text.vectors * text.mask[..., None]
        return self.convolution(words.transpose(1, 2)).transpose(1, 2)

    def forward(self, first: WordBatch, second: WordBatch) -> Tensor:
        question, answer = self.pool(self.states(first), first.mask, self.states(second), second.mask)
        return F.cosine_similarity(question, answer)

    def rank_loss(self, scores: Tensor, labels: Tensor, groups: Tensor) -> Tensor:
        return worst_negative_hinge_loss(scores, labels, groups, self.negatives, self.margin)
