"""RoBERTa."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.blocks.objectives.masked_pieces import MaskedPieces
from architectures.blocks.piece_transformer import PieceTransformer
from harness.registry import Recipe, register
from harness.views.subwords import Subwords


@register(
    "roberta",
    name="RoBERTa, small",
    kind="plm",
    paper="Liu et al. 2019",
    source="M2.10[146] T1 T3 T5",
    year=2019,
    parents={"weights": "roberta@text_mix"},
    recipe=Recipe(
        optimizer="adamw",
        lr=(0.00001, 0.00002, 0.00003),
        batch_size=32,
        epochs=10,
        patience=10,
        weight_decay=0.1,
        betas=(0.9, 0.98),
        eps=0.000001,
        lr_schedule="linear",
        warmup_share=0.06,
        decay_exempt=("biases", "norms"),
    ),
    recipes={
        "text": Recipe(
            optimizer="adamw",
            lr=0.0006,
            batch_size=32,
            epochs=5,
            patience=5,
            weight_decay=0.01,
            betas=(0.9, 0.98),
            eps=0.000001,
            lr_schedule="linear",
            warmup_share=0.048,
            decay_exempt=("biases", "norms"),
        ),
    },
    tiny={"layers": 1, "hidden": 32, "heads": 2, "vocabulary": 1000},
    deviations=("Four layers of 256, not twenty-four of 1,024, and texts of at most 128 pieces in pre-training.",),
)
class RoBERTa(PieceTransformer):
    """BERT without segments, which learns from masked pieces alone: other ones at each pass over
    the texts, which are packed to full length.

    The vector of a text is the first state, through dropout, a linear layer and tanh.
    """

    learns = MaskedPieces
    unused = ("pooler",)  # tags, spans and masked pieces are read from the states

    def __init__(
        self,
        width: int,
        view: Subwords,
        layers: int = 4,
        hidden: int = 256,
        heads: int = 4,
        dropout: float = 0.1,
        vocabulary: int = 8000,
        max_length: int = 128,
        stride: int = 64,
    ):
        super().__init__(width, view, layers, hidden, heads, dropout, segments=0, activation=nn.GELU)
        self.pooler = nn.Linear(hidden, hidden)
        self.begin(self.pooler, 0.02)

    def pooled(self, states: Tensor) -> Tensor:
        return self.dropout(torch.tanh(self.pooler(self.dropout(states[:, 0]))))
