"""Probabilities of words without a model, which a language model must beat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from architectures.floors.floors import Floor
from harness.problems.language_model import vocabulary
from harness.registry import register
from harness.task import Row


@register(
    "floor_unigram",
    name="floor: each word by its share of training",
    kind="floor",
    paper="none",
    source="none",
    year=0,
    hyperparameters={"predictions": "unigram"},
    variants={
        "floor_uniform": {"name": "floor: all words alike", "hyperparameters": {"predictions": "uniform"}},
    },
)
class WordFloor(Floor):
    """The floors of a language model, over the words of training."""

    def fit(self, train: Sequence[Row], dev: Sequence[Row], unlabelled: Sequence[Row] = ()) -> None:
        super().fit(train, dev, unlabelled)
        self.vocabulary = vocabulary(train)

    def fitted_state(self) -> dict[str, Any]:
        return super().fitted_state() | {"vocabulary": self.vocabulary}
