"""BERT."""

from __future__ import annotations

import dataclasses
from typing import Any

from torch import nn

from architectures.blocks.objectives.next_sentence import NextSentence
from architectures.blocks.piece_transformer import PooledPieces
from architectures.blocks.published_weights import LAYERS, Family, PublishedWeights
from harness.registry import Recipe, TaskEntry, register
from harness.views.subwords import Subwords

FAMILY = Family("bert", LAYERS | {"pooler.0": "pooler.dense"})


@register(
    "bert",
    name="BERT, small",
    kind="plm",
    paper="Devlin et al. 2018",
    source="M2.10[7] R25",
    year=2018,
    version=3,
    parents={"weights": "bert@text_mix"},
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
    tiny={"layers": 1, "hidden": 32, "heads": 2, "vocabulary": 1000},
    deviations=(
        "Pre-training makes five passes in batches of 32 sequences; the paper makes a million steps of 256.",
        (
            "Four layers of 256, not twelve of 768, and 8,000 pieces in lower case, where words are tagged too;"
            " -o bert.pretrained=FOLDER loads the paper's."
        ),
        (
            "Pre-training reads the text mix of 17 million words, not books and Wikipedia of 3,300 million, a text at"
            " a time and at most 128 pieces of it, not 512."
        ),
        "A text is divided behind a full stop, or anywhere where there is none, and the other text is of the batch.",
        (
            "One rate, batch size and number of passes serves all tasks; the paper chooses among several on dev, and"
            " has 5e-5 for SQuAD (2.0: batches of 48, two passes)."
        ),
        "Adam corrects its moments for their start at zero; the authors' optimizer does not.",
        "In the warm-up the rate is up to a tenth lower than the authors', since its linear fall has begun.",
        "The layer on top starts as PyTorch's do; the authors draw from normal numbers of deviation 0.02.",
        "No answer is given where its score is the higher one; the paper adds a threshold that it chooses on dev.",
        "A batch is 32 questions with all windows of their passages; the authors' is 32 windows.",
        "A window is 128 pieces, and they begin 64 apart; the authors' are 384 pieces, 128 apart.",
        "Words are tagged in their sentence alone; the paper adds as much of the document as fits.",
    ),
    variants={
        "bert_base": {
            "name": "BERT-base",
            "sees": ("foreign weights",),
            "source": "M2.10[7] T1-T4 R25",
            "parents": {},
            "recipes": {},
            "hyperparameters": {
                "pretrained": "bert-base-{case}",
                "layers": 12,
                "hidden": 768,
                "heads": 12,
                "max_length": 384,
                "stride": 128,
            },
            "tiny": {"pretrained": "", "layers": 1, "hidden": 32, "heads": 2, "vocabulary": 1000},
            "without_deviations": ("Four layers", "Pre-training makes", "Pre-training reads", "A window is"),
        },
        "bert_large": {
            "name": "BERT-large",
            "sees": ("foreign weights",),
            "source": "M2.10[7] T1-T4 R25",
            "parents": {},
            "recipes": {},
            "hyperparameters": {
                "pretrained": "bert-large-{case}",
                "layers": 24,
                "hidden": 1024,
                "heads": 16,
                "max_length": 384,
                "stride": 128,
            },
            "tiny": {"pretrained": "", "layers": 1, "hidden": 32, "heads": 2, "vocabulary": 1000},
            "without_deviations": ("Four layers", "Pre-training makes", "Pre-training reads", "A window is"),
            "deviations": (
                "Each seed counts; the paper starts several times on small tasks and keeps the best run on dev.",
            ),
        },
    },
)
class BERT(PooledPieces):
    """Piece, segment and learned position vectors added, then transformer layers with GELU and the
    norm after each residual sum, which learn from masked pieces and from whether one segment of
    text follows another.

    ``pretrained`` is a folder or a name on the hub that holds weights (safetensors) and their
    tokenizer; ``{case}`` in it stands for "cased" where words are tagged, and "uncased" elsewhere.
    Loaded weights bring their own ``layers``, ``hidden``, ``heads``, ``dropout`` and
    ``vocabulary``. A sequence has at most ``max_length`` pieces; a longer passage is read in
    windows that begin ``stride`` pieces apart. The vector of a text is the last state of [CLS]
    through a linear layer and tanh. In front of the layer that scores classes or labels, dropout
    stands; spans are scored without. Models of the published sizes are slow without a GPU.
    """

    learns = NextSentence

    @classmethod
    def view_for(cls, task: TaskEntry, hyperparameters: dict[str, Any]) -> Subwords | None:
        """The pieces of a task's texts: published weights read words that are tagged in their own
        case, which tells names."""
        view = super().view_for(task, hyperparameters)
        if view is None:
            return None
        case = "cased" if task.type == "tag" else "uncased"
        return dataclasses.replace(view, pretrained=view.pretrained.replace("{case}", case))

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
        sizes = {"layers": layers, "hidden": hidden, "heads": heads, "dropout": dropout}
        given = PublishedWeights(view.pretrained, FAMILY, width, view.max_length) if view.pretrained else None
        super().__init__(width, view, **(given.sizes if given else sizes), activation=nn.GELU)
        if given:
            given.give(self)
