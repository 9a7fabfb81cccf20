"""Sentence-BERT."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from architectures.blocks.apart import SubwordsApart
from architectures.blocks.bert_states import BERTStates
from harness.registry import Recipe, register
from harness.views.subwords import SubwordBatch, Subwords


@register(
    "sbert",
    name="Sentence-BERT, small",
    kind="plm",
    paper="Reimers & Gurevych 2019",
    source="M2.8[124]",
    year=2019,
    parents={"weights": "bert@text_mix"},
    recipe=Recipe(
        optimizer="adamw",
        lr=0.00002,
        batch_size=16,
        epochs=1,
        weight_decay=0.01,
        clip=1.0,
        lr_schedule="linear",
        warmup_share=0.1,
        eps=0.000001,
        decay_exempt=("biases", "norms"),
    ),
    tiny={"layers": 1, "hidden": 32, "heads": 2, "vocabulary": 1000},
    deviations=(
        "The parent is our BERT, of four layers of 256 and 8,000 pieces in lower case; -o sbert.pretrained=FOLDER loads"
        " the paper's. It is tuned on each task by itself, not on SNLI and MultiNLI together.",
        "AdamW, as in the authors' program, which does not correct its moments for their start; the paper says Adam.",
        "Candidates are ranked by their cosine with the question, which learns by the squared distance from 1 of right"
        " ones and from 0 of wrong ones, as the paper learns degrees of likeness.",
    ),
)
class SentenceBERT(BERTStates):
    """BERT reads both texts by themselves; a text's vector is the mean of its states, [CLS] and
    [SEP] among them.

    Relations of texts u and v are scored by a linear layer on [u; v; |u - v|]. Without ``classes``
    the pair's score is cos(u, v). The other settings are BERT's.
    """

    gives = "pair vector"
    view = SubwordsApart()

    @classmethod
    def can_answer(cls, type: str) -> bool:
        """True for what is asked of two texts with classes or candidates."""
        return type in ("match", "rank")

    def __init__(
        self,
        width: int,
        view: Subwords,
        classes: int | None = None,
        pretrained: str = "",
        layers: int = 4,
        hidden: int = 256,
        heads: int = 4,
        dropout: float = 0.1,
        vocabulary: int = Subwords.size,
        max_length: int = 128,
    ):
        sizes: dict[str, Any] = {"layers": layers, "hidden": hidden, "heads": heads, "dropout": dropout}
        super().__init__(width, view, pretrained, **sizes)
        self.scores = classes is None
        self.size = 3 * self.size

    def states(self, pieces: SubwordBatch) -> Tensor:
        """States (B, T, n) of BERT."""
        return super().forward(pieces)

    def text(self, pieces: SubwordBatch) -> Tensor:
        """Mean (B, n) of a text's states."""
        states, mask = self.states(pieces), pieces.mask[..., None]
        return (states * mask).sum(1) / mask.sum(1)

    def forward(self, first: SubwordBatch, second: SubwordBatch) -> Tensor:  # type: ignore[override]
        u, v = self.text(first), self.text(second)
        return F.cosine_similarity(u, v) if self.scores else torch.cat([u, v, (u - v).abs()], dim=1)

    def rank_loss(self, scores: Tensor, labels: Tensor, groups: Tensor) -> Tensor:
        return F.mse_loss(scores, labels.to(scores.dtype))
