"""Texts read as vectors that another system learnt to give them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from architectures.blocks.ngrams import lower_words
from architectures.blocks.random_vectors import random_vector
from harness.ragged import Columns
from harness.views.base import Text, View


class TextVectorBatch(NamedTuple):
    """A vector of each of B texts, (B, D)."""

    vectors: Tensor


@dataclass
class TextVectors(View):
    """Texts by the vectors that a parent gives them, ``vectors_of`` so many texts (N, D); without
    one, by the means of random vectors of their words, of so many ``dims``."""

    dims: int = 100
    vectors_of = None

    @property
    def width(self) -> int:
        return self.size

    def fit(self, texts: Sequence[Text]) -> None:
        self.size = self._vectors(texts[:1]).shape[1]

    def _vectors(self, texts: Sequence[Text]) -> np.ndarray:
        if self.vectors_of is not None:
            return self.vectors_of(texts)
        words = [lower_words(text) or [""] for text in texts]
        return np.array([np.mean([random_vector(word, self.dims) for word in each], axis=0) for each in words])

    def encode(self, texts: Sequence[Text]) -> Columns:
        return {"vectors": self._vectors(texts).astype(np.float32)}

    def lengths(self, columns: Columns) -> np.ndarray:
        return np.ones(len(columns["vectors"]), dtype=np.int64)

    def collate(self, columns: Columns, rows: np.ndarray) -> TextVectorBatch:
        return TextVectorBatch(torch.from_numpy(np.array(columns["vectors"][rows])))

    def state(self) -> dict[str, Any]:
        return {"size": self.size}

    def restore(self, state: dict[str, Any]) -> None:
        self.size = state["size"]
