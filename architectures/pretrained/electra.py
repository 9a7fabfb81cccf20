"""ELECTRA."""

from __future__ import annotations

from torch import Tensor, nn

from architectures.blocks.objectives.replaced_pieces import ReplacedPieces
from architectures.blocks.piece_transformer import PieceTransformer
from architectures.blocks.published_weights import LAYERS, Family, PublishedWeights
from harness.registry import Recipe, register
from harness.views.subwords import Subwords

FAMILY = Family("electra", LAYERS | {"projection": "embeddings_project"})


@register(
    "electra",
    name="ELECTRA, small",
    kind="plm",
    paper="Clark et al. 2020",
    source="M2.10[150]",
    year=2020,
    version=3,
    parents={"weights": "electra@text_mix"},
    recipe=Recipe(
        optimizer="adamw",
        lr=0.0003,
        batch_size=32,
        epochs=3,
        patience=3,
        weight_decay=0.01,
        clip=1.0,
        eps=0.000001,
        lr_schedule="linear",
        warmup_share=0.1,
        decay_exempt=("biases", "norms"),
        layer_decay=0.8,
        # The highest layer has 0.8^2, since the task's layer counts as two; vectors have 0.8^6.
        groups=(("encoder.body.*", 0.8), ("encoder.*", 0.262144)),
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
            warmup_share=0.01,
            decay_exempt=("biases", "norms"),
        ),
    },
    tiny={"layers": 1, "hidden": 32, "heads": 2, "embedded": 16, "vocabulary": 1000},
    deviations=(
        "Pre-training makes five passes in batches of 32 sequences; the paper makes a million steps of 128.",
        "Four layers of 256, not twelve, a vocabulary of 8,000, and windows of passages of 128 pieces, 64 apart;"
        " -o electra.pretrained=FOLDER loads the paper's.",
        "Vectors have the rate that four layers leave them, with loaded weights, too.",
        "Adam corrects its moments for their start at zero; the authors' optimizer does not.",
        "Replaced pieces are 15 % of a text's own, all different; the authors' program counts the marks, too, and draws"
        " places that may coincide.",
        "Texts are packed and all stand in the first segment, whose vector alone is learnt before tuning; nine in ten"
        " of the authors' sequences have two segments of one document.",
        "Words are labelled through dropout; the authors' program has none there.",
        "Three passes serve all tasks; the paper has two for SQuAD and ten for small tasks.",
        "Decay is that of the authors' program; the paper tunes without.",
        (
            "The generator reads a mask at every chosen piece, as the paper has it; the authors' program leaves 15 % of"
            " them as they are."
        ),
        (
            "In evaluation the replaced pieces are any ones of the vocabulary, so that the score does not depend on the"
            " generator; the paper asks of what the generator draws."
        ),
        "Weights are the best by this score of the last tenth of pre-training, where the paper takes the last.",
        (
            "Start and end of a span are scored apart, and no answer at [CLS]; in the authors' program the end knows"
            " the start, of which 20 are tried, and a classifier, whose loss weighs half, says that there is no answer."
        ),
    ),
)
class ELECTRA(PieceTransformer):
    """An encoder with narrow vectors of pieces, which learns to tell the pieces of a text from
    those that a small generator put in their place.

    ``pretrained`` is a folder or a name on the hub that holds weights (safetensors) of such an
    encoder, the discriminator, and their tokenizer, which bring their own ``layers``, ``hidden``,
    ``heads``, ``embedded``, ``dropout`` and ``vocabulary``. The vector of a text is the first
    state, through dropout.
    """

    learns = ReplacedPieces

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
        sizes = {"layers": layers, "hidden": hidden, "heads": heads, "dropout": dropout, "embedded": embedded}
        given = PublishedWeights(view.pretrained, FAMILY, width, view.max_length) if view.pretrained else None
        super().__init__(width, view, **(given.sizes if given else sizes), activation=nn.GELU)
        if given:
            given.give(self)

    def pooled(self, states: Tensor) -> Tensor:
        return self.dropout(states[:, 0])
