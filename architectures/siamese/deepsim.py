"""Deep similarity network over vectors of whole texts that another system learnt."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from architectures.blocks.text_vectors import TextVectorBatch, TextVectors
from harness.errors import ModelError
from harness.kinds import PairEncoder
from harness.registry import Recipe, register
from harness.views.base import View

if TYPE_CHECKING:
    from harness.saved_models.model import KeptModel


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
        view.vectors_of = estimator.text_vectors  # type: ignore[attr-defined]
        return view

    def forward(self, first: TextVectorBatch, second: TextVectorBatch) -> Tensor:
        u, v = self.tower(first.vectors), self.tower(second.vectors)
        return torch.tanh(self.joined((u - v).abs()))
