"""DistilBERT."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from architectures.blocks.objectives.distilled_pieces import DistilledPieces
from architectures.blocks.piece_transformer import PieceTransformer
from architectures.blocks.published_weights import Family, PublishedWeights
from harness.kinds import Parent
from harness.registry import Recipe, register
from harness.saved_models.parents import copy_weights
from harness.task import Row
from harness.views.subwords import Subwords

FAMILY = Family(
    "distilbert",
    {
        "table": "embeddings.word_embeddings",
        "positions": "embeddings.position_embeddings",
        "norm": "embeddings.LayerNorm",
        "body.layers.*.attention.query": "transformer.layer.*.attention.q_lin",
        "body.layers.*.attention.key": "transformer.layer.*.attention.k_lin",
        "body.layers.*.attention.value": "transformer.layer.*.attention.v_lin",
        "body.layers.*.attention.output": "transformer.layer.*.attention.out_lin",
        "body.layers.*.norms.0": "transformer.layer.*.sa_layer_norm",
        "body.layers.*.feedforward.0": "transformer.layer.*.ffn.lin1",
        "body.layers.*.feedforward.3": "transformer.layer.*.ffn.lin2",
        "body.layers.*.norms.1": "transformer.layer.*.output_layer_norm",
    },
    expected={"activation": "gelu"},
    settings={"inner": "hidden_dim", "dropout": "dropout", "attention_dropout": "attention_dropout"},
)


def one_of_two(layers: int, of: int) -> list[int]:
    """The numbers of so many of a teacher's layers, the first and the last among them: of twelve
    the six 0, 2, 4, 7, 9 and 11."""
    return [round(number * (of - 1) / max(1, layers - 1)) for number in range(layers)]


@register(
    "distilbert",
    name="DistilBERT, small",
    kind="plm",
    paper="Sanh et al. 2019",
    source="M2.10[148]",
    year=2019,
    parents={"weights": "distilbert@text_mix", "teacher": "bert@text_mix"},
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
            lr=0.0005,
            batch_size=32,
            epochs=3,
            patience=3,
            clip=5.0,
            betas=(0.9, 0.98),
            eps=1e-06,
            lr_schedule="slanted_triangle",
            warmup_share=0.05,
        ),
    },
    tiny={"layers": 1, "hidden": 32, "heads": 2, "vocabulary": 1000},
    deviations=(
        (
            "Two layers of 256, not six of 768, of which BERT, small, is the teacher, 8,000 pieces in lower case, and"
            " windows of passages of 128 pieces, 64 apart; -o distilbert.pretrained=FOLDER loads the paper's."
        ),
        (
            "Distillation makes three passes over 17 million words in batches of 32 stretches of 128 pieces; the"
            " paper's are of up to 4,000 sequences, of Wikipedia and books."
        ),
        (
            "Pieces are masked with one probability, 15 % of each text, as in the paper; the authors' program masks"
            " rare ones more often than common ones, and so many of a batch."
        ),
        "Vectors of positions are learnt; in the authors' distillation they stay as the teacher's.",
        "Dropout acts on what attention adds, too, as in BERT; the authors' model has none there.",
        "Tuning has the recipe of our BERT, since the paper states none.",
        (
            "Classes are scored from the first state, through dropout; the authors' program of tuning has one more"
            " layer there, with ReLU and a dropout of 0.2, and scores spans through a dropout of 0.1, which stands"
            " nowhere here."
        ),
        "Tuning has no teacher; the paper has one result with one, on SQuAD.",
        "No answer is given where its score is the higher one; the paper has no passages without an answer.",
    ),
)
class DistilBERT(PieceTransformer):
    """BERT with half of the layers, without segments and pooler, which learns from masked pieces
    and, at each piece of plain text, to think as a teacher does.

    It begins with the teacher's vectors of pieces and positions and one of each two layers
    (:func:`one_of_two`). Without a teacher it learns from masked pieces alone. ``pretrained`` is a
    folder or a name on the hub that holds weights (safetensors) and their tokenizer, which bring
    their own ``layers``, ``hidden``, ``heads``, ``dropout`` and ``vocabulary``. The vector of a
    text is the first state, through dropout.
    """

    learns = DistilledPieces
    takes = ("weights", "teacher")

    def __init__(
        self,
        width: int,
        view: Subwords,
        pretrained: str = "",
        layers: int = 2,
        hidden: int = 256,
        heads: int = 4,
        dropout: float = 0.1,
        vocabulary: int = 8000,
        max_length: int = 128,
        stride: int = 64,
    ):
        sizes = {"layers": layers, "hidden": hidden, "heads": heads, "dropout": dropout}
        given = PublishedWeights(view.pretrained, FAMILY, width, view.max_length) if view.pretrained else None
        sizes = given.sizes | {"eps": 1e-12} if given else sizes
        super().__init__(width, view, **sizes, segments=0, activation=nn.GELU)
        if given:
            given.give(self)

    def inherit(self, role: str, parent: Parent, rows: Sequence[Row]) -> None:
        super().inherit(role, parent, rows)
        if role == "teacher":
            for name in ("table", "positions", "norm"):
                copy_weights(parent, self.get_submodule(name), f"encoder.{name}")
            layers = self.body.layers
            for layer, number in zip(
                layers, one_of_two(len(layers), len(parent.model.encoder.body.layers)), strict=True
            ):
                copy_weights(parent, layer, f"encoder.body.layers.{number}")

    def pooled(self, states: Tensor) -> Tensor:
        return self.dropout(states[:, 0])
