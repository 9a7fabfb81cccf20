"""SpanBERT."""

from __future__ import annotations

from torch import nn

from architectures.blocks.objectives.spans import MaskedSpans
from architectures.blocks.piece_transformer import PooledPieces
from architectures.blocks.published_weights import LAYERS, Family, PublishedWeights
from harness.registry import Recipe, register
from harness.views.subwords import Subwords

FAMILY = Family("bert", LAYERS | {"pooler.0": "pooler.dense"})


@register(
    "spanbert",
    name="SpanBERT, small",
    kind="plm",
    paper="Joshi et al. 2020",
    source="M2.10[149] T3",
    year=2020,
    parents={"weights": "spanbert@text_mix"},
    recipe=Recipe(
        optimizer="adamw",
        lr=(0.00001, 0.00002, 0.00003),
        batch_size=32,
        epochs=4,
        patience=4,
        weight_decay=0.01,
        clip=1.0,
        eps=0.000001,
        lr_schedule="slanted_triangle",
        warmup_share=0.1,
        decay_exempt=("biases", "norms"),
    ),
    recipes={
        "text": Recipe(
            optimizer="adamw",
            lr=0.0001,
            batch_size=32,
            epochs=5,
            patience=5,
            weight_decay=0.1,
            clip=1.0,
            eps=1e-08,
            lr_schedule="slanted_triangle",
            warmup_share=0.0042,
            decay_exempt=("biases", "norms"),
        ),
    },
    tiny={"layers": 1, "hidden": 32, "heads": 2, "vocabulary": 1000},
    deviations=(
        (
            "Four layers of 256, not twenty-four of 1,024, 8,000 word pieces in lower case, not 29,000 with case, and"
            " windows of passages of 128 pieces, 64 apart; -o spanbert.pretrained=FOLDER loads the paper's."
        ),
        (
            "Pre-training makes five passes in batches of 32 stretches of 128 pieces that may hold several texts; the"
            " paper makes 2.4 million steps of 256 segments of 512 pieces of one text."
        ),
        "Batches of 32, four passes and three rates serve all tasks; the paper has ten, and tries 16 and five rates.",
        "A masked span of random pieces has any of the vocabulary; the authors draw them by their frequency.",
        "A span at the beginning or end of a text is told by the mark there, too; the authors leave it out.",
        "In pre-training the decay spares biases and norms; the authors' program decays them too.",
        "Adam corrects its moments for their start at zero; the authors' optimizer does not.",
        "Any word may begin a span, and the last span ends with a word; in the authors' program a word of several"
        " pieces begins one more often, and the last span may end inside a word.",
        "The loss beside the span is of all its pieces; the authors leave out those behind the fifteenth.",
        "The decay of pre-training is the paper's 0.1; the authors' command has 0.01.",
    ),
)
class SpanBERT(PooledPieces):
    """BERT without a second segment in pre-training, which learns from masked spans of words and
    from the two states beside each.

    ``pretrained`` is a folder or a name on the hub that holds weights (safetensors) and their
    tokenizer, which bring their own ``layers``, ``hidden``, ``heads``, ``dropout`` and
    ``vocabulary``. The vector of a text is the first state, through a linear layer and tanh.
    """

    learns = MaskedSpans

    def __init__(
        self,
        width: int,
        view: Subwords,
        pretrained: str = "",
        layers: int = 4,
        hidden: int = 256,
        heads: int = 4,
        dropout: float = 0.1,
        vocabulary: int = 8000,
        max_length: int = 128,
        stride: int = 64,
    ):
        sizes = {"layers": layers, "hidden": hidden, "heads": heads, "dropout": dropout}
        given = PublishedWeights(view.pretrained, FAMILY, width, view.max_length) if view.pretrained else None
        super().__init__(width, view, **(given.sizes if given else sizes), activation=nn.GELU)
        if given:
            given.give(self)
