"""RoBERTa."""

from __future__ import annotations

from torch import Tensor, nn

from architectures.blocks.objectives.masked_pieces import MaskedPieces
from architectures.blocks.piece_transformer import PieceTransformer
from architectures.blocks.published_weights import LAYERS, Family, PublishedWeights
from harness.registry import Recipe, register
from harness.views.subwords import Subwords

FAMILY = Family("roberta", LAYERS, after_padding=True)


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
        lr_schedule="slanted_triangle",
        warmup_share=0.06,
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
            eps=1e-06,
            lr_schedule="slanted_triangle",
            warmup_share=0.048,
            decay_exempt=("biases", "norms"),
        ),
    },
    tiny={"layers": 1, "hidden": 32, "heads": 2, "vocabulary": 1000},
    deviations=(
        "Pre-training makes five passes in batches of 32 sequences; the paper makes 500,000 steps of 8,000.",
        (
            "Four layers of 256, not twenty-four of 1,024, and 8,000 word pieces in lower case, not 50,000 of bytes;"
            " -o roberta.pretrained=FOLDER loads the paper's."
        ),
        (
            "Pre-training reads the text mix of 17 million words, not 160 GB, in sequences of at most 128 pieces, not"
            " 512, which begin and end anywhere in a text, not between its sentences."
        ),
        (
            "A batch is of 32 texts, and passes are ten, on all tasks; the paper has 16 too, and on SQuAD 1.5e-5,"
            " batches of 48, two passes and a decay of 0.01."
        ),
        "In pre-training the decay spares biases and norms; the authors' program decays them too.",
        "One separator stands between two texts; the authors have two.",
        "No answer is given where its score is the higher one; the authors train a score of that.",
    ),
)
class RoBERTa(PieceTransformer):
    """BERT without segments, which learns from masked pieces alone: other ones at each pass over
    the texts, which are packed to full length.

    ``pretrained`` is a folder or a name on the hub that holds weights (safetensors) and their
    tokenizer, which bring their own ``layers``, ``hidden``, ``heads``, ``dropout`` and
    ``vocabulary``. The vector of a text is the first state, through dropout, a linear layer and
    tanh; the layer begins anew.
    """

    learns = MaskedPieces
    unused = ("pooler",)  # tags, spans and masked pieces are read from the states

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
        super().__init__(width, view, **(given.sizes if given else sizes), segments=0, activation=nn.GELU)
        self.pooler = nn.Sequential(nn.Linear(self.size, self.size), nn.Tanh())
        if given:
            given.give(self)

    def pooled(self, states: Tensor) -> Tensor:
        return self.dropout(self.pooler(self.dropout(states[:, 0])))
