"""Words hashed into a few counts: a view of its own, and a network that reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import torch
from torch import Tensor, nn

from harness.kinds import TextEncoder
from harness.registry import Entry, Recipe, register
from harness.views import Text, View, words_of


class HashedBatch(NamedTuple):
    """Counts (B, buckets) of the words of B texts, and their ``lengths`` (B,) in words."""

    counts: Tensor
    lengths: Tensor


@dataclass
class HashedCounts(View):
    """How many words of a text fall into each bucket; common buckets weigh little."""

    buckets: int = 64

    @property
    def width(self) -> int:
        return self.buckets

    def counts(self, texts: Sequence[Text]) -> np.ndarray:
        """Counts (texts, buckets)."""
        counts = np.zeros((len(texts), self.buckets), dtype=np.float32)
        for row, text in zip(counts, texts, strict=True):
            for word in words_of(text):
                row[crc32(word.lower().encode()) % self.buckets] += 1
        return counts

    def fit(self, texts: Sequence[Text]) -> None:
        self.weights = np.log((1 + len(texts)) / (1 + (self.counts(texts) > 0).sum(0)), dtype=np.float32)

    def encode(self, texts: Sequence[Text]) -> dict[str, Any]:
        return {
            "counts": self.counts(texts) * self.weights,
            "words": np.array([len(words_of(text)) for text in texts], dtype=np.int64),
        }

    def lengths(self, columns: dict[str, Any]) -> np.ndarray:
        return columns["words"]

    def collate(self, columns: dict[str, Any], rows: np.ndarray) -> HashedBatch:
        return HashedBatch(*(torch.from_numpy(np.array(columns[name][rows])) for name in ("counts", "words")))

    def state(self) -> dict[str, Any]:
        return {"weights": self.weights.tolist()}

    def restore(self, state: dict[str, Any]) -> None:
        self.weights = np.array(state["weights"], dtype=np.float32)


@register(
    "frozen_hashed",
    name="Hashed counts",
    kind="text",
    paper="Nobody 2009",
    source="section 5",
    year=2009,
    recipe=Recipe(lr=0.005, batch_size=32),
    tiny={"hidden": 24},
)
class Hashed(TextEncoder):
    """A hidden layer over hashed counts; it tells no story, because its counts have no order."""

    view = HashedCounts(buckets=96)

    def __init__(self, width: int, hidden: int = 64):
        super().__init__()
        self.hidden = nn.Sequential(nn.Linear(width, hidden), nn.ReLU())
        self.size = hidden

    @classmethod
    def unfit(cls, task: Entry, hyperparameters: dict[str, Any]) -> str | None:
        if task.type == "answer":
            return "counts words, and a story is told by their order"
        return super().unfit(task, hyperparameters)

    def forward(self, texts: HashedBatch) -> Tensor:
        return self.hidden(texts.counts)
