"""Sentence vectors from natural language inference."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.blocks.recurrent import Recurrent
from harness.kinds import PairEncoder, pool
from harness.registry import Recipe, register
from harness.views.words import WordBatch


@register(
    "infersent",
    name="InferSent (BiLSTM-max)",
    kind="pair",
    paper="Conneau et al. 2017a",
    source="X4.6",
    year=2017,
    recipe=Recipe(
        optimizer="sgd",
        lr=0.1,
        batch_size=64,
        epochs=20,
        patience=6,
        clip=5.0,
        lr_schedule="plateau",
        factor=0.2,
    ),
    tiny={"hidden": 24, "layer": 24},
    vectors_of_paper="GloVe",
    deviations=(
        (
            "The learning rate is divided by 5 after each epoch that does not improve dev, but not multiplied by 0.99"
            " after all others."
        ),
        (
            "Training stops after six epochs in a row without a better dev score; in the paper once the rate, divided"
            " as often, is below 1e-5."
        ),
        "No marks stand before the first word of a text and behind its last.",
        "Words are lower-cased; those seen once share one vector with those that training lacks, GloVe's too, and any"
        " other without a given vector has one of its own. The authors' program keeps capitals and leaves out what"
        " GloVe lacks.",
        "The transfer of the trained sentence vectors to other tasks is not part of this row.",
    ),
)
class InferSent(PairEncoder):
    """A BiLSTM whose states' maximum is a sentence's vector u; [u; v; |u - v|; u * v] classified by
    linear layers.

    The maximum is taken of each feature over the real words. The classifier has three linear
    layers with nothing between them, the last of which is the head's: (B, ``layer``). The word
    vectors are fixed. Slow, because of 2048 units in each direction.
    """

    vectors = "fixed"

    def __init__(self, width: int, hidden: int = 2048, layer: int = 512):
        super().__init__()
        self.encoding = Recurrent("lstm", width, hidden, bidirectional=True)
        self.classifier = nn.Sequential(nn.Linear(4 * self.encoding.size, layer), nn.Linear(layer, layer))
        self.size = layer

    def sentence(self, text: WordBatch) -> Tensor:
        """The vector u (B, 2 * hidden) of each text."""
        return pool(self.encoding(text.vectors, text.mask), text.mask, "max")

    def forward(self, first: WordBatch, second: WordBatch) -> Tensor:
        u, v = self.sentence(first), self.sentence(second)
        return self.classifier(torch.cat([u, v, (u - v).abs(), u * v], dim=1))
