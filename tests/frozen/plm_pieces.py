"""A small transformer over word pieces, which starts at random."""

from __future__ import annotations

import dataclasses
from typing import Any

from torch import Tensor, arange, nn

from harness.kinds import PretrainedEncoder
from harness.registry import Recipe, register
from harness.views.base import View
from harness.views.subwords import SubwordBatch, Subwords


@register(
    "frozen_pieces",
    name="Pieces",
    kind="plm",
    paper="Nobody 2018",
    source="section 3",
    year=2018,
    recipe=Recipe(optimizer="adamw", lr=0.00005, batch_size=32, epochs=3, weight_decay=0.01, lr_schedule="linear"),
    tiny={"hidden": 32, "pieces": 200, "longest": 64},
    deviations=("Nothing is pre-trained.",),
)
class Pieces(PretrainedEncoder):
    """Vectors of pieces, places and segments, then one layer of a transformer; [CLS] stands for the
    text."""

    view = Subwords(max_length=128)

    @classmethod
    def reads(cls, column: str, hyperparameters: dict[str, Any]) -> View | None:
        view = super().reads(column, hyperparameters)
        names = {"pieces": "size", "longest": "max_length"}
        wanted = {field: hyperparameters[name] for name, field in names.items() if name in hyperparameters}
        return None if view is None else dataclasses.replace(view, **wanted)

    def __init__(self, width: int, hidden: int = 64, heads: int = 2, pieces: int = 1000, longest: int = 128):
        super().__init__()
        self.pieces, self.segments = nn.Embedding(width, hidden), nn.Embedding(2, hidden)
        self.places = nn.Embedding(longest, hidden)
        self.layer = nn.TransformerEncoderLayer(hidden, heads, 2 * hidden, dropout=0.0, batch_first=True)
        self.size = hidden

    def forward(self, pieces: SubwordBatch) -> Tensor:
        places = arange(pieces.ids.shape[1], device=pieces.ids.device)
        vectors = self.pieces(pieces.ids) + self.segments(pieces.segments) + self.places(places)
        return self.layer(vectors, src_key_padding_mask=~pieces.mask)
