"""The architecture under which input sources are checked: nothing beside what it reads."""

from __future__ import annotations

from torch import Tensor

from harness.kinds import TextEncoder
from harness.layers.pooling import pool
from harness.registry import register
from harness.views.words import WordBatch


@register("mean_of_words", name="Mean of words", kind="text", paper="none", source="archbench check", year=2026)
class MeanOfWords(TextEncoder):
    """Mean (B, width) of what stands for each word."""

    def __init__(self, width: int):
        super().__init__()
        self.size = width

    def forward(self, words: WordBatch) -> Tensor:
        return pool(words.vectors, words.mask, "mean")
