"""ALUM."""

from __future__ import annotations

from torch import nn

from architectures.blocks.objectives.adversarial_pieces import AdversarialPieces
from architectures.blocks.piece_transformer import PooledPieces
from harness.registry import Recipe, register
from harness.views.subwords import Subwords


@register(
    "alum",
    name="ALUM, small",
    kind="plm",
    paper="Liu et al. 2020",
    source="M2.10[14]",
    year=2020,
    version=2,
    parents={"weights": "alum@text_mix"},
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
            lr=0.0001,
            batch_size=32,
            epochs=5,
            patience=5,
            weight_decay=0.01,
            clip=1.0,
            lr_schedule="linear",
            warmup_share=0.01,
            eps=1e-06,
            decay_exempt=("biases", "norms"),
        ),
    },
    tiny={"layers": 2, "hidden": 32, "heads": 2, "vocabulary": 1000},
    deviations=(
        (
            "Four layers of 256, not twelve of 768, 8,000 word pieces in lower case, and windows of passages of 128"
            " pieces, 64 apart."
        ),
        (
            "Pre-training makes five passes over 17 million words in batches of 32 stretches of 128 pieces; the paper"
            " makes a million steps over Wikipedia and books."
        ),
        (
            "Recipes of pre-training and tuning are those of our BERT, whose rate and passes serve all tasks; the paper"
            " chooses among several on dev."
        ),
        "Tuning has no adversarial term; the paper has results with one, too.",
        "The radius is the paper's; at this size the gradient of the term is a ten-millionth of that of masked pieces.",
        "The passes of a step drop the same numbers; in the authors' program each drops others.",
        (
            "The step follows the gradient of a text divided by its largest number; the paper and the authors' programs"
            " take the gradient as it is. The move is cut at the radius, as in the paper; in the authors' programs the"
            " sum of a vector (in tuning, of the start) and its step is divided by its largest number at each piece,"
            " and cut nowhere."
        ),
        "The move is added to the vectors of pieces, in front of positions and norm, and the term teaches these"
        " vectors, too; in the authors' program it is added behind both, and they are constants to it.",
    ),
)
class ALUM(PooledPieces):
    """BERT's body, which learns from masked pieces and, in the second half of the pre-training, to
    tell them alike when the vectors of pieces are moved to where the answers change most.

    ``radius`` is the most by which a number of a piece's vector is moved. With the paper's the term
    is a millionth of a nat in a model that has not learnt yet. The vector of a text is the first
    state, through a linear layer and tanh.
    """

    learns = AdversarialPieces

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
        radius: float = 1e-5,
    ):
        super().__init__(width, view, layers, hidden, heads, dropout, activation=nn.GELU)
        self.radius = radius
