"""fastText's linear classifier."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor, nn

from harness.kinds import TextEncoder
from harness.registry import Recipe, register
from harness.views.bag import Bag, BagBatch


@register(
    "fasttext",
    name="fastText",
    kind="text",
    paper="Joulin et al. 2016",
    source="M2.1[30] T2",
    year=2016,
    recipe=Recipe(optimizer="sgd", lr=4.0, batch_size=16, epochs=5, lr_schedule="linear"),
    tiny={"buckets": 1000},
    version=2,
    deviations=(
        "2 million buckets, as the authors' program has them by default, instead of the paper's 10 million.",
        (
            "Under protocol equal Adam is lazy: at each step it moves only the rows that the batch read, and only their"
            " moments decay."
        ),
        "The paper's recipe steps once per 16 texts at 16 times the rate 0.25, not once per text.",
        "The output layer starts as PyTorch's layers do, not from zero as in the authors' program.",
        "On pairs of texts the harness puts a hidden layer with biases and ReLU below the output.",
        "Softmax only: hierarchical softmax, which the authors use for many classes, needs label frequencies.",
    ),
)
class FastText(TextEncoder):
    """The mean of the vectors of a text's words and hashed n-grams; one linear layer on top without
    bias and non-linearity.

    Vectors of ``hidden`` numbers; n-grams of 2 to ``ngrams`` words share ``buckets`` rows. The
    table starts uniform in +-1/hidden, as in the authors' release.
    """

    view = Bag()
    view_settings: ClassVar[dict[str, str]] = {"ngrams": "ngrams", "buckets": "buckets"}
    head_bias = False

    def __init__(self, width: int, hidden: int = 10, ngrams: int = Bag.ngrams, buckets: int = Bag.buckets):
        super().__init__()
        self.table = nn.EmbeddingBag(width, hidden, mode="mean", sparse=True)
        nn.init.uniform_(self.table.weight, -1 / hidden, 1 / hidden)
        self.size = hidden

    def forward(self, bag: BagBatch) -> Tensor:
        return self.table(bag.ids, bag.offsets)
