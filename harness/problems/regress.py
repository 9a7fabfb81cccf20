"""Regression: a number for a text, or for two texts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean
from typing import Any, ClassVar

import numpy as np
import torch.nn.functional as F
from torch import Tensor, nn

from harness.errors import DataError
from harness.problems.base import Batch, EncodedSplit, Fields, Head, Inputs, Problem, Target, numbers_of, size_of
from harness.problems.classify import text_vector
from harness.problems.match import above_twins, both_texts, twin
from harness.ragged import Columns
from harness.registry import register_problem
from harness.task import Row
from harness.views.base import View


def score_of(row: Row) -> float:
    """The row's score; :class:`DataError` for what is no finite number."""
    score = row["score"]
    if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
        raise DataError(f"row {row['id']}: score {score!r}; a finite number is wanted")
    return float(score)


class ScoreTarget(Target):
    """One number per row (B,), in standard deviations from the mean of the training scores."""

    mean: float
    deviation: float

    def fit(self, rows: Sequence[Row]) -> None:
        scores = np.array([score_of(row) for row in rows])
        self.mean, self.deviation = float(scores.mean()), float(scores.std()) or 1.0

    def encode(self, rows: Sequence[Row], view: View) -> Columns:
        scores = np.array([score_of(row) for row in rows])
        return {"score": ((scores - self.mean) / self.deviation).astype(np.float32)}

    def collate(self, columns: Columns, rows: np.ndarray) -> Tensor:
        return numbers_of(columns["score"], rows)


class Regress(Head):
    """Vector of a text, one linear layer, squared error; predictions are on the scale of the
    training scores."""

    def __init__(self, encoder: Any, target: ScoreTarget):
        super().__init__()
        self.target = target
        self.output = self.layer(encoder)

    def layer(self, encoder: Any) -> nn.Module:
        """The layer from the encoder's vector to the number."""
        return nn.Linear(size_of(encoder), 1)

    def vector(self, encoder: Any, inputs: Inputs) -> Tensor:
        """Input of the layer (B, numbers)."""
        return text_vector(encoder, inputs["text"])

    def forward(self, encoder: Any, inputs: Inputs) -> Tensor:
        return self.output(self.drop(self.vector(encoder, inputs))).squeeze(1)

    def loss(self, encoder: Any, outputs: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(outputs, target)

    def row_losses(self, encoder: Any, outputs: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(outputs, target, reduction="none")

    def decode(self, encoder: Any, outputs: Tensor, batch: Batch, split: EncodedSplit) -> list[float]:
        return (outputs.float() * self.target.deviation + self.target.mean).tolist()


class RegressTwins(Regress):
    """Twin encoders joined as for matching, and one hidden layer."""

    def layer(self, encoder: Any) -> nn.Module:
        return above_twins(encoder, 1)

    def vector(self, encoder: Any, inputs: Inputs) -> Tensor:
        return twin(encoder, inputs)


class RegressPair(Regress):
    """An architecture that reads both texts itself: a linear layer on its vector, or on its
    similarity, whose scale the task need not have."""

    def layer(self, encoder: Any) -> nn.Module:
        return nn.Linear(1 if encoder.scores else size_of(encoder), 1)

    def vector(self, encoder: Any, inputs: Inputs) -> Tensor:
        joined = encoder(inputs["first"], inputs["second"])
        return joined[:, None] if encoder.scores else joined


@register_problem(
    "regress",
    name="Regression",
    columns=("text", "score"),
    inputs=("text",),
    texts=("text",),
    metrics=("pearson", "spearman", "mse"),
    answers="harness.problems.answers.numbers:Numbers",
    forms={"score": "number"},
)
class RegressProblem(Problem):
    """A text has a score, a number on any scale; a prediction is a number on that scale."""

    learnt_by_heart: ClassVar = "mse"
    heads: ClassVar = {"states": Regress, "vector": Regress, "joined states": Regress}

    def target(self, gives: str) -> Target:
        return ScoreTarget()

    floor_names = ("mean", "random")

    def floors(self, train: Sequence[Row], rows: Sequence[Row]) -> dict[str, list[float]]:
        """The mean of the training scores, and scores drawn from them."""
        scores = [score_of(row) for row in train]
        drawn = np.random.default_rng(0).choice(scores, size=len(rows))
        return {"mean": [fmean(scores)] * len(rows), "random": drawn.tolist()}

    def flipped(self, rows: Sequence[Row]) -> list[Row]:
        """High scores are low, and low ones high."""
        scores = [score_of(row) for row in rows]
        ends = min(scores) + max(scores)
        return [row | {"score": ends - score} for row, score in zip(rows, scores, strict=True)]


@register_problem(
    "regress_pair",
    name="Regression of pairs",
    columns=("first", "second", "score"),
    inputs=("first", "second"),
    texts=("first", "second"),
    metrics=("pearson", "spearman", "mse"),
    answers="harness.problems.answers.numbers:Numbers",
    forms={"score": "number"},
)
class RegressPairProblem(RegressProblem):
    """Two texts have a score, such as how similar they are; a prediction is a number on its
    scale."""

    heads: ClassVar = {
        "states": RegressTwins,
        "vector": RegressTwins,
        "pair vector": RegressPair,
        "pair score": RegressPair,
        "joined states": Regress,
    }

    def fields(self, gives: str, view: View) -> Fields:
        return both_texts()
