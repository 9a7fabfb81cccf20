"""ALBERT."""

from __future__ import annotations

import functools

from torch import nn

from architectures.blocks.objectives.sentence_order import SentenceOrder
from architectures.blocks.piece_transformer import PooledPieces
from architectures.blocks.published_weights import EXPECTED, TABLES, Family, PublishedWeights
from harness.registry import Recipe, register
from harness.views.subwords import Subwords

LAYER = "encoder.albert_layer_groups.0.albert_layers.0"
FAMILY = Family(
    "albert",
    TABLES
    | {
        "projection": "encoder.embedding_hidden_mapping_in",
        "body.layers.*.attention.query": f"{LAYER}.attention.query",
        "body.layers.*.attention.key": f"{LAYER}.attention.key",
        "body.layers.*.attention.value": f"{LAYER}.attention.value",
        "body.layers.*.attention.output": f"{LAYER}.attention.dense",
        "body.layers.*.norms.0": f"{LAYER}.attention.LayerNorm",
        "body.layers.*.feedforward.0": f"{LAYER}.ffn",
        "body.layers.*.feedforward.3": f"{LAYER}.ffn_output",
        "body.layers.*.norms.1": f"{LAYER}.full_layer_layer_norm",
        "pooler.0": "pooler",
    },
    expected=EXPECTED | {"hidden_act": "gelu_new", "num_hidden_groups": 1, "inner_group_num": 1},
)


@register(
    "albert",
    name="ALBERT, small",
    kind="plm",
    paper="Lan et al. 2020",
    source="M2.10[147] T1 T3",
    year=2019,
    version=2,
    parents={"weights": "albert@text_mix"},
    recipe=Recipe(
        optimizer="adamw",
        lr=(0.00001, 0.00002, 0.00003),
        batch_size=32,
        epochs=10,
        patience=10,
        weight_decay=0.01,
        clip=1.0,
        eps=0.000001,
        lr_schedule="linear",
        warmup_share=0.06,
        decay_exempt=("biases", "norms"),
    ),
    recipes={
        "text": Recipe(
            optimizer="adamw",
            lr=0.0005,
            batch_size=32,
            epochs=5,
            patience=5,
            weight_decay=0.01,
            clip=1.0,
            eps=1e-06,
            lr_schedule="linear",
            warmup_share=0.025,
            decay_exempt=("biases", "norms"),
        ),
    },
    tiny={"layers": 2, "hidden": 32, "heads": 2, "embedded": 16, "vocabulary": 1000},
    deviations=(
        (
            "Pre-training makes five passes in batches of 32 sequences by AdamW at a rate of 0.0005; the paper makes"
            " 125,000 steps of 4,096 by LAMB at 0.00176."
        ),
        (
            "Four layers of 256, not twelve of 768, 8,000 word pieces, not 30,000 of SentencePiece, and windows of"
            " passages of 128 pieces, 64 apart; -o albert.pretrained=FOLDER loads the paper's."
        ),
        (
            "Batches, passes and warm-up are the same on all tasks, and the rate is the best of three on dev; the paper"
            " has others for each."
        ),
        "Dropout in tuning is 0.1 everywhere; the authors have it in front of the classes, and inside their model on"
        " four tasks of twelve.",
        "Adam corrects its moments for their start at zero; the authors' optimizer does not.",
        "In the warm-up the rate is up to 6 % lower than the authors', since its linear fall has begun.",
        "A text of one sentence is divided between two words; in the authors' program another text is put behind it,"
        " and the two count as out of order. A tenth of its sequences are cut short.",
        "A text that fills the sequence has no separator at its end.",
        (
            "Start and end of a span are scored apart, and no answer at [CLS]; on SQuAD 2 the authors' program looks"
            " for ends behind the best starts, and a classifier says that there is no answer."
        ),
    ),
)
class ALBERT(PooledPieces):
    """An encoder with narrow vectors of pieces and one layer, which all its depth shares, and which
    learns from masked n-grams and the order of two segments.

    ``pretrained`` is a folder or a name on the hub that holds weights (safetensors) and their
    tokenizer, which bring their own ``layers``, ``hidden``, ``heads``, ``embedded``, ``dropout``
    and ``vocabulary``. The vector of a text is the first state, through a linear layer and tanh.
    """

    learns = SentenceOrder

    def __init__(
        self,
        width: int,
        view: Subwords,
        pretrained: str = "",
        layers: int = 4,
        hidden: int = 256,
        heads: int = 4,
        embedded: int = 128,
        dropout: float = 0.1,
        vocabulary: int = 8000,
        max_length: int = 128,
        stride: int = 64,
    ):
        gelu = functools.partial(nn.GELU, "tanh")  # as in the authors' program
        sizes = {"layers": layers, "hidden": hidden, "heads": heads, "dropout": dropout, "embedded": embedded}
        given = PublishedWeights(view.pretrained, FAMILY, width, view.max_length) if view.pretrained else None
        super().__init__(width, view, **(given.sizes if given else sizes), shared=True, activation=gelu)
        if given:
            given.give(self)
