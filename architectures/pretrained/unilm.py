"""UniLM."""

from __future__ import annotations

from torch import nn

from architectures.blocks.objectives.attention_masks import SEGMENTS, AttentionMasks
from architectures.blocks.piece_transformer import PooledPieces
from harness.registry import Recipe, register
from harness.views.subwords import Subwords


@register(
    "unilm",
    name="UniLM, small",
    kind="plm",
    paper="Dong et al. 2019",
    source="M2.10[157,158]",
    year=2019,
    parents={"weights": "unilm@text_mix"},
    recipe=Recipe(
        optimizer="adamax",
        lr=0.00005,
        batch_size=32,
        epochs=5,
        patience=5,
        clip=1.0,
        lr_schedule="slanted_triangle",
        warmup_share=0.1,
    ),
    recipes={
        "text": Recipe(
            optimizer="adamw",
            lr=0.0001,
            batch_size=32,
            epochs=5,
            patience=5,
            weight_decay=0.01,
            clip=1.0,
            eps=1e-06,
            lr_schedule="linear",
            warmup_share=0.052,
            decay_exempt=("biases", "norms"),
        ),
    },
    tiny={"layers": 1, "hidden": 32, "heads": 2, "vocabulary": 1000},
    deviations=(
        (
            "Pre-training makes five passes in batches of 32 texts from random weights, at the rate of BERT; the paper"
            " makes 770,000 steps of 330 from BERT-large's, at 3e-5."
        ),
        (
            "Four layers of 256, not twenty-four of 1,024, and 8,000 word pieces in lower case, not 29,000 with case,"
            " of which a text has at most 128, not 512."
        ),
        "The way in which a text is read is drawn for each text; the paper has a third or a sixth of each batch.",
        "A text is divided behind a full stop, or anywhere where there is none, and the other text is of the batch.",
        (
            "Answers are classes, tags and spans; the paper writes sequences, too, by tuning on source and target, for"
            " which encoders of pieces have no task here."
        ),
        "It is the first version; the second (Bao et al. 2020) adds masks that stand beside what they hide.",
        (
            "The recipe of the paper's GLUE serves all tasks, and dropout is that of pre-training; the paper has three"
            " passes in batches of 24 on SQuAD, and another dropout for some tasks."
        ),
    ),
)
class UniLM(PooledPieces):
    """BERT's body, which learns to tell masked pieces under four masks of attention, with vectors
    of segments that say which.

    Tuned on a task it reads from both sides. The vector of a text is the first state, through a
    linear layer and tanh.
    """

    learns = AttentionMasks

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
        super().__init__(width, view, layers, hidden, heads, dropout, segments=SEGMENTS, activation=nn.GELU)
