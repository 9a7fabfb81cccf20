"""Attentive pooling over the states of a BiLSTM."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from architectures.blocks.attentive_pooling import AttentivePooling
from architectures.blocks.ranking import worst_negative_hinge_loss
from architectures.blocks.recurrent import Recurrent
from harness.kinds import PairEncoder
from harness.registry import Recipe, register
from harness.views.words import WordBatch


@register(
    "ap_bilstm",
    name="Attentive pooling BiLSTM",
    kind="pair",
    paper="dos Santos et al. 2016",
    source="M2.5[83]",
    year=2016,
    recipe=Recipe(optimizer="sgd", lr=1.1, lr_schedule="inverse_epoch", decay=1.0, batch_size=20, epochs=25),
    tiny={"hidden": 12},
    deviations=("Negatives are drawn from the wrong candidates of the same question, not from all answers.",),
)
class AttentivePoolingBiLSTM(PairEncoder):
    """The cosine of two texts' vectors, each pooled from its BiLSTM states by attention to the
    other text.

    One BiLSTM of ``hidden`` units each way reads both texts: Q (B, M, 2 * hidden) and A (B, L, 2 *
    hidden). Trained by a hinge against the best scored of ``negatives`` drawn wrong candidates.
    """

    scores = True
    whole_groups = True

    def __init__(self, width: int, hidden: int = 141, negatives: int = 50, margin: float = 0.2):
        super().__init__()
        self.negatives, self.margin = negatives, margin
        self.recurrence = Recurrent("lstm", width, hidden, bidirectional=True)
        self.pool = AttentivePooling(2 * hidden)

    def forward(self, first: WordBatch, second: WordBatch) -> Tensor:
        asked, answered = self.recurrence(first.vectors, first.mask), self.recurrence(second.vectors, second.mask)
        question, answer = self.pool(asked, first.mask, answered, second.mask)
        return F.cosine_similarity(question, answer)

    def rank_loss(self, scores: Tensor, labels: Tensor, groups: Tensor) -> Tensor:
        return worst_negative_hinge_loss(scores, labels, groups, self.negatives, self.margin)
