"""Deep similarity network over vectors of whole texts that another system learnt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from architectures.blocks.ngrams import lower_words
from architectures.blocks.random_vectors import random_vector
from harness.errors import ModelError
from harness.kinds import PairEncoder
from harness.ragged import Columns
from harness.registry import Recipe, register
from harness.views.base import Text, View

if TYPE_CHECKING:
    from harness.saved_models.model import KeptModel


class TextVectorBatch(NamedTuple):
    """A vector of each of B texts, (B, D)."""

    vectors: Tensor


@dataclass
class TextVectors(View):
    """Texts by the vectors that a parent gives them (``text_vectors``); without one, by the means
    of random vectors of their words, of so many ``dims``."""

    dims: int = 100
    parent = None

    @property
    def width(self) -> int:
        return self.size

    def fit(self, texts: Sequence[Text]) -> None:
        self.size = self._vectors(texts[:1]).shape[1]

    def _vectors(self, texts: Sequence[Text]) -> np.ndarray:
        if self.parent is not None:
            return self.parent.text_vectors(texts)
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


@register(
    "deepsim",
    name="Deep similarity network",
    kind="pair",
    paper="Minaee & Liu 2017",
    source="M2.8[128]",
    year=2017,
    recipe=Recipe(lr=0.001),
    parents={"inputs": "doc2vec"},
    tiny={"hidden": 32},
    deviations=(
        "Sizes, the number of layers and the training by Adam are our choices: the paper's are unconfirmed.",
        "The vectors are learnt on the texts of the task; the paper's are of a large corpus of questions and answers.",
        "Without a parent, as `archbench check` runs it, a text is the mean of random vectors of its words.",
    ),
)
class DeepSimilarity(PairEncoder):
    """Two texts by vectors x and y of a parent such as doc2vec, which stay as they are: both pass
    the same dense tanh layers, to u and v, and a dense tanh layer reads |u - v|. Above it the
    harness scores the pair."""

    view = TextVectors()
    takes = ("inputs",)

    def __init__(self, width: int, hidden: int = 200, layers: int = 2):
        super().__init__()
        sizes = [width, *[hidden] * layers]
        parts = (nn.Sequential(nn.Linear(a, b), nn.Tanh()) for a, b in pairwise(sizes))
        self.tower, self.joined, self.size = nn.Sequential(*parts), nn.Linear(hidden, hidden), hidden

    @classmethod
    def inherited_view(cls, view: View, role: str, parent: KeptModel) -> View:
        estimator = getattr(parent, "estimator", None)
        if not hasattr(estimator, "text_vectors"):
            raise ModelError(f"{parent.description.part.architecture} gives no vectors of texts, as doc2vec does")
        view.parent = estimator  # type: ignore[attr-defined]
        return view

    def forward(self, first: TextVectorBatch, second: TextVectorBatch) -> Tensor:
        u, v = self.tower(first.vectors), self.tower(second.vectors)
        return torch.tanh(self.joined((u - v).abs()))
