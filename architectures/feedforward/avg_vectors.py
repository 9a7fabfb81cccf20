"""Averaged word vectors: the floor against which every neural row is read."""

from __future__ import annotations

from torch import Tensor

from harness.kinds import TextEncoder, pool
from harness.registry import register
from harness.views.words import WordBatch


@register(
    "avg_vectors",
    name="Averaged word vectors",
    kind="text",
    paper="Janssen 2012",
    source="X4.6",
    year=2012,
    deviations=(
        (
            "The source only composes vectors: the linear layer on top, its recipe (Adam at 0.001 in batches of 64) and"
            " trained vectors of 300 numbers are ours."
        ),
    ),
)
class AveragedVectors(TextEncoder):
    """The mean (``pooling`` "mean") or the sum ("sum") of the word vectors; the harness puts one
    linear layer on top.

    A text without words is the zero vector.
    """

    def __init__(self, width: int, pooling: str = "mean"):
        super().__init__()
        if pooling not in ("mean", "sum"):
            raise ValueError(f"avg_vectors: pooling={pooling!r} is neither mean nor sum")
        self.pooling = pooling
        self.size = width

    def forward(self, words: WordBatch) -> Tensor:
        if self.pooling == "sum":
            return (words.vectors * words.mask[..., None]).sum(1)
        return pool(words.vectors, words.mask, "mean")
