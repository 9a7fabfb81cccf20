"""Probabilities of texts without pieces, which a division into pieces must beat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from architectures.floors.floors import Floor
from harness.problems.language_model import Surprise
from harness.problems.pieces import CHARACTERS
from harness.registry import register
from harness.task import Row


@register(
    "floor_characters",
    name="floor: each character by its share of training",
    kind="floor",
    paper="none",
    source="none",
    year=0,
    hyperparameters={"predictions": "characters"},
)
class CharacterFloor(Floor):
    """Texts by their characters alone."""

    unit: ClassVar[str] = CHARACTERS

    def predict(self, rows: Sequence[Row]) -> list[Surprise]:
        return self.problem.floors_of(type(self), self.train, rows)[self.predictions]
