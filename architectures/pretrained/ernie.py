"""ERNIE 1.0."""

from __future__ import annotations

from torch import nn

from architectures.blocks.objectives.masked_units import MaskedUnits
from architectures.blocks.piece_transformer import PooledPieces
from architectures.blocks.published_weights import EXPECTED, LAYERS, Family, PublishedWeights
from architectures.blocks.units import MarkedSubwords
from harness.registry import Recipe, register
from harness.views.subwords import Subwords

FAMILY = Family(
    "ernie", LAYERS | {"pooler.0": "pooler.dense"}, expected=EXPECTED | {"hidden_act": "relu", "use_task_id": False}
)


@register(
    "ernie",
    name="ERNIE 1.0, small",
    kind="plm",
    paper="Sun et al. 2019",
    source="M2.10[151]",
    year=2019,
    version=2,
    parents={"weights": "ernie@text_mix"},
    recipe=Recipe(
        optimizer="adamw",
        lr=(0.00002, 0.00005, 0.0001),
        batch_size=32,
        epochs=3,
        patience=3,
        weight_decay=0.01,
        clip=1.0,
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
            warmup_share=0.005,
            decay_exempt=("biases", "norms"),
        ),
    },
    tiny={"layers": 1, "hidden": 32, "heads": 2, "vocabulary": 1000},
    deviations=(
        (
            "Phrases are runs of up to four words between marks and function words, and names runs of capitals; the"
            " authors find both by tools and tables of their own, which are for Chinese."
        ),
        (
            "Stages are thirds of the training, of words, phrases and names, and each unit has 15 %; the paper states"
            " no length of a stage, and the authors' program has words and single characters."
        ),
        (
            "The second segment is the text's own or another one's, as in the authors' program; the paper reads"
            " dialogues and tells real ones from made ones."
        ),
        (
            "Four layers of 256, not twelve of 768, 8,000 word pieces of English in lower case, not 18,000 of Chinese"
            " characters, and windows of passages of 128 pieces, 64 apart."
        ),
        (
            "Pre-training makes five passes over 17 million words in batches of 32 sequences of at most 128 pieces; the"
            " authors make a million steps of 8,192 pieces in sequences of 512, over 173 million sentences."
        ),
        (
            "Batches of 32, three passes and the best of three rates serve all tasks; the authors have batches of 8 to"
            " 32 texts or of 8,192 pieces, a rate for each task, and once ten passes."
        ),
        "In the warm-up the rate is lower than the authors' by up to half a per cent, since its linear fall has begun.",
        "The layer that scores pieces has GELU; the authors' has ReLU, as all layers have.",
    ),
)
class ERNIE(PooledPieces):
    """BERT, with ReLU, that learns from masked words, phrases and names, each of them masked whole,
    one sort after another, and from whether one segment follows another.

    ``pretrained`` is a folder or a name on the hub that holds weights (safetensors) and their
    tokenizer, which bring their own ``layers``, ``hidden``, ``heads``, ``dropout`` and
    ``vocabulary``. The vector of a text is the first state, through a linear layer and tanh.
    """

    view = MarkedSubwords()
    learns = MaskedUnits

    def __init__(
        self,
        width: int,
        view: Subwords,
        pretrained: str = "",
        layers: int = 4,
        hidden: int = 256,
        heads: int = 4,
        dropout: float = 0.1,
        vocabulary: int = Subwords.size,
        max_length: int = 128,
        stride: int = 64,
    ):
        sizes = {"layers": layers, "hidden": hidden, "heads": heads, "dropout": dropout, "eps": 1e-5}
        given = PublishedWeights(view.pretrained, FAMILY, width, view.max_length) if view.pretrained else None
        super().__init__(width, view, **(given.sizes if given else sizes), activation=nn.ReLU)
        if given:
            given.give(self)
