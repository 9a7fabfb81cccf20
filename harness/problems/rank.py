"""Ranking: a score for each candidate answer of a question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch.nn.functional as F
from torch import Tensor, nn

from harness.errors import DataError
from harness.kinds import PairEncoder
from harness.problems.base import (
    Answer,
    Batch,
    EncodedSplit,
    Fields,
    Head,
    Inputs,
    Problem,
    Properties,
    Target,
    numbers_of,
    size_of,
    with_probability,
)
from harness.problems.classify import text_vector
from harness.problems.match import above_twins, both_texts, twin
from harness.ragged import Columns
from harness.registry import register_problem
from harness.task import Row
from harness.views.base import View, words_of


class RankTarget(Target):
    """Right (1) or wrong (0) per pair, and the number of its question: two int64 (B,)."""

    def encode(self, rows: Sequence[Row], view: View) -> Columns:
        groups = {group: number for number, group in enumerate(dict.fromkeys(row["group"] for row in rows))}
        return {
            "label": np.array([truth(row) for row in rows], dtype=np.int64),
            "group": np.array([groups[row["group"]] for row in rows], dtype=np.int64),
        }

    def collate(self, columns: Columns, rows: np.ndarray) -> tuple[Tensor, Tensor]:
        return numbers_of(columns["label"], rows), numbers_of(columns["group"], rows)


def truth(row: Row) -> int:
    """1 for a right candidate, 0 for a wrong one."""
    if row["label"] not in ("0", "1"):
        raise DataError(f'row {row["id"]}: label {row["label"]!r}; "1" is a right candidate and "0" a wrong one')
    return int(row["label"])


class Rank(Head):
    """A score per pair from twin encoders; the loss is the encoder's own (pointwise unless it says
    otherwise)."""

    output: Any
    """The layer that gives the score; None above an encoder that gives it itself."""

    def __init__(self, encoder: Any, target: RankTarget):
        super().__init__()
        self.target = target
        self.output = self.layer(encoder)

    def layer(self, encoder: Any) -> nn.Module | None:
        """The layer from the joined vectors to one score."""
        return above_twins(encoder, 1)

    def forward(self, encoder: Any, inputs: Inputs) -> Tensor:
        return self.output(self.drop(twin(encoder, inputs))).squeeze(1)

    def loss(self, encoder: Any, outputs: Tensor, target: tuple[Tensor, Tensor]) -> Tensor:
        labels, groups = target
        if hasattr(encoder, "rank_loss"):
            return encoder.rank_loss(outputs, labels, groups)
        return F.binary_cross_entropy_with_logits(outputs, labels.to(outputs.dtype))

    def row_losses(self, encoder: Any, outputs: Tensor, target: tuple[Tensor, Tensor]) -> Tensor:
        """The pointwise loss; one that compares candidates has none of single rows."""
        if not self.is_pointwise(encoder):
            raise NotImplementedError(f"{type(encoder).__name__} ranks by a loss of several candidates")
        labels, _ = target
        return F.binary_cross_entropy_with_logits(outputs, labels.to(outputs.dtype), reduction="none")

    @staticmethod
    def is_pointwise(encoder: Any) -> bool:
        """True where the loss is the cross-entropy of each pair alone."""
        return not hasattr(encoder, "rank_loss") or type(encoder).rank_loss is PairEncoder.rank_loss

    def decode(self, encoder: Any, outputs: Tensor, batch: Batch, split: EncodedSplit) -> list[float]:
        return outputs.float().tolist()

    def answers(self, encoder: Any, outputs: Tensor, batch: Batch, split: EncodedSplit) -> list[Answer]:
        """The probability that a candidate is right, where the loss makes scores its logits: a loss
        that compares candidates orders them and says no more."""
        shares = outputs.double().sigmoid().tolist() if self.is_pointwise(encoder) else None
        return with_probability(self.decode(encoder, outputs, batch, split), shares)


class RankPair(Rank):
    """An architecture that reads both texts itself: its score, or a linear layer on its vector."""

    def layer(self, encoder: Any) -> nn.Module | None:
        return None if encoder.scores else nn.Linear(size_of(encoder), 1)

    def forward(self, encoder: Any, inputs: Inputs) -> Tensor:
        joined = encoder(inputs["first"], inputs["second"])
        return joined if self.output is None else self.output(self.drop(joined)).squeeze(1)


class RankJoined(Rank):
    """Both texts in one sequence (pre-trained encoders)."""

    def layer(self, encoder: Any) -> nn.Module:
        return nn.Linear(size_of(encoder), 1, bias=self.is_pointwise(encoder))  # comparisons cannot see a constant

    def forward(self, encoder: Any, inputs: Inputs) -> Tensor:
        return self.output(self.drop(text_vector(encoder, inputs["text"]))).squeeze(1)


QUESTION_WORDS = ("what", "who", "when", "where", "which", "why", "how")


def question_word(words: Sequence[str]) -> str:
    """The first question word among the words of a question, or ``other``."""
    return next((word for word in words if word in QUESTION_WORDS), "other")


def by_question_word(problem: Problem) -> Properties:
    """The property of a unit that its texts ask with."""
    return {"question word": (lambda row: question_word(problem.words(row) or ()), (*QUESTION_WORDS, "other"))}


@register_problem(
    "rank",
    name="Ranking",
    columns=("first", "second", "label", "group"),
    inputs=("first", "second", "group"),
    texts=("first", "second"),
    unit_texts=("first",),
    cluster="group",
    unit="question",
    metrics=("map", "mrr"),
    answers="harness.problems.answers.candidates:Candidates",
    forms={"label": "zero_or_one", "group": "name"},
)
class RankProblem(Problem):
    """Candidates of one question are ordered; a prediction is the candidate's score, higher being
    better. The question alone is a unit's text, since all its candidates share it."""

    heads: ClassVar = {
        "states": Rank,
        "vector": Rank,
        "pair vector": RankPair,
        "pair score": RankPair,
        "joined states": RankJoined,
    }

    def fields(self, gives: str, view: View) -> Fields:
        return both_texts()

    def target(self, gives: str) -> Target:
        return RankTarget()

    floor_names = ("equal", "random", "shared words")

    def floors(self, train: Sequence[Row], rows: Sequence[Row]) -> dict[str, list[float]]:
        """Equal scores, random ones, and the number of words that question and candidate share."""

        def shared(row: Row) -> float:
            first, second = ({w.lower() for w in words_of(row[side])} for side in ("first", "second"))
            return float(len(first & second))

        drawn = np.random.default_rng(0).random(len(rows)).tolist()
        return {"equal": [0.0] * len(rows), "random": drawn, "shared words": [shared(row) for row in rows]}

    def right(self, row: Row) -> float:
        return float(truth(row))

    def flipped(self, rows: Sequence[Row]) -> list[Row]:
        """Right candidates are wrong, and wrong ones right."""
        return [row | {"label": str(1 - truth(row))} for row in rows]

    def properties(self, rows: Sequence[Row]) -> Properties:
        return by_question_word(self)
