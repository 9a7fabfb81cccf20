"""TANDA: transfer on a large set of questions and answers, then adaptation to a small one."""

from __future__ import annotations

from architectures.pretrained.bert import BERT
from harness.registry import Recipe, register


@register(
    "tanda",
    name="TANDA, small",
    kind="plm",
    paper="Garg et al. 2020",
    source="M-T4[153]",
    year=2020,
    parents={"weights": "bert@text_mix+squad_sentences"},
    recipe=Recipe(
        optimizer="adam",
        lr=0.000001,
        batch_size=150,
        epochs=3,
        patience=1,
        clip=1.0,
        lr_schedule="linear",
    ),
    tiny={"layers": 1, "hidden": 32, "heads": 2, "vocabulary": 1000},
    deviations=(
        "The large set is 8,384 questions of SQuAD with the sentences of their passages, 45,173 pairs; the paper's is"
        " ASNQ, 20 million pairs made of Natural Questions, where wrong are also parts of the long answer.",
        "The transfer is a cell of our BERT on squad_sentences, with BERT's recipe and rate; the paper has 2e-5.",
        "The parent is our BERT, of four layers of 256 and 8,000 pieces in lower case;"
        " -o tanda.pretrained=FOLDER loads others, which were not transferred.",
        "The last step is tuned to the target's dev like all rows; the paper chooses the rates of both steps there.",
    ),
)
class TANDA(BERT):
    """BERT that was tuned to select answers on a large set of another kind of questions, and goes
    on with a small rate on the questions at hand, with the layer that scores candidates."""

    learns = None
    keeps_head = True

    @classmethod
    def can_answer(cls, type: str) -> bool:
        """True for candidate answers alone, which both steps rank."""
        return type == "rank"
