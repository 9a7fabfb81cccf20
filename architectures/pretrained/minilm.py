"""MiniLM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from architectures.blocks.objectives.last_attention import LastAttention
from architectures.pretrained.bert import BERT
from harness.errors import ModelError
from harness.kinds import Parent
from harness.registry import Recipe, register
from harness.task import Row
from harness.views.subwords import Subwords


@register(
    "minilm",
    name="MiniLM, small",
    kind="plm",
    paper="Wang et al. 2020",
    source="M6[226]",
    year=2020,
    parents={"weights": "minilm@text_mix", "teacher": "bert@text_mix"},
    recipe=Recipe(
        optimizer="adamw",
        lr=0.00003,
        batch_size=32,
        epochs=3,
        patience=3,
        weight_decay=0.01,
        clip=1.0,
        lr_schedule="linear",
        warmup_share=0.1,
        eps=0.000001,
        decay_exempt=("biases", "norms"),
    ),
    recipes={
        "text": Recipe(
            optimizer="adamw",
            lr=0.0003,
            batch_size=32,
            epochs=5,
            patience=5,
            weight_decay=0.01,
            betas=(0.9, 0.999),
            lr_schedule="slanted_triangle",
            warmup_share=0.01,
            decay_exempt=("biases", "norms"),
        ),
    },
    tiny={"layers": 2, "hidden": 32, "heads": 2, "vocabulary": 1000},
    deviations=(
        (
            "Two layers of 128, not six of 384, with as many heads as the teacher, four, not twelve, 8,000 pieces in"
            " lower case, and windows of passages of 128 pieces, 64 apart; -o minilm.pretrained=FOLDER loads the"
            " paper's."
        ),
        (
            "Distillation makes five passes over 17 million words in batches of 32 stretches of 128 pieces; the paper"
            " makes 400,000 steps of 256 over Wikipedia and books, of at most 512."
        ),
        (
            "The layers that tell masked pieces, of which the score on plain text is made, are trained beside the"
            " distillation; the paper has none, and nothing that the encoder learns depends on them."
        ),
        "The pass with the best of these scores is kept; the paper's is the last.",
        "No assistant teaches between teacher and student, as the paper's does for its smallest students.",
        "Tuning has the recipe of our BERT; the paper chooses among four rates and three to five passes on dev.",
        "No answer is given where its score is the higher one; the paper adds a threshold.",
    ),
)
class MiniLM(BERT):
    """BERT's body, smaller, whose last layer learns from plain text to attend and to relate its
    values as the last one of a teacher does.

    What stands above the attention of the last layer begins at random and learns in tuning. Without
    a teacher it learns from masked pieces. ``heads`` must be as many as the teacher's; widths and
    numbers of layers need not. ``pretrained`` is as in BERT.
    """

    learns = LastAttention
    takes = ("weights", "teacher")

    def __init__(
        self,
        width: int,
        view: Subwords,
        pretrained: str = "",
        layers: int = 2,
        hidden: int = 128,
        heads: int = 4,
        dropout: float = 0.1,
        vocabulary: int = 8000,
        max_length: int = 128,
        stride: int = 64,
    ):
        sizes: dict[str, Any] = {"layers": layers, "hidden": hidden, "heads": heads, "dropout": dropout}
        super().__init__(width, view, pretrained, **sizes)

    def inherit(self, role: str, parent: Parent, rows: Sequence[Row]) -> None:
        super().inherit(role, parent, rows)
        if role == "teacher" and (heads := parent.model.encoder.body.heads) != self.body.heads:
            raise ModelError(f"it has {heads} heads, and minilm.heads is {self.body.heads}: there must be as many")
