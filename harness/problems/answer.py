"""Story questions: one word that answers a question about a story."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from harness.errors import ContractError
from harness.problems.base import (
    Fields,
    Inputs,
    Problem,
    Properties,
    majority_and_random,
    numbers,
    turned,
    unknown,
)
from harness.problems.classify import Classify, ClassTarget
from harness.ragged import Columns, Ragged
from harness.registry import register_problem
from harness.task import SUPPORTING_FACTS, Row
from harness.views.base import View, words_of


class AnswerTarget(ClassTarget):
    """One word per row, as its number among the training answers: int64 (B,). The last number is
    every word that is none of them."""

    def fit(self, rows: Sequence[Row]) -> None:
        self.labels = [*sorted({row["answer"] for row in rows}), ""]

    def encode(self, rows: Sequence[Row], view: View) -> Columns:
        known = numbers(self.labels)
        return {"label": np.array([known.get(row["answer"], known[""]) for row in rows], dtype=np.int64)}


class StoryHead(Classify):
    """An architecture that reads facts and question."""

    def forward(self, encoder: Any, inputs: Inputs) -> Tensor:
        vector = encoder(inputs["facts"], inputs["question"])
        return vector if self.output is None else self.output(self.drop(vector))


class SupportedTarget(AnswerTarget):
    """Answers (B,) as of :class:`AnswerTarget`, and the supporting facts (B, K) as their numbers
    among the facts that are read, from 1, with 0 behind them."""

    def fit(self, rows: Sequence[Row]) -> None:
        if "support" not in rows[0]:
            raise ContractError(f'an architecture that gives "chosen facts" declares sees=("{SUPPORTING_FACTS}",)')
        super().fit(rows)

    def encode(self, rows: Sequence[Row], view: View) -> Columns:
        most = view.most  # type: ignore[attr-defined]  # only Facts reads facts
        unread = (max(0, len(row["facts"]) - most) for row in rows)
        shown = (
            [fact + 1 - cut for fact in row.get("support", ()) if fact >= cut]
            for row, cut in zip(rows, unread, strict=True)
        )
        return super().encode(rows, view) | {"support": Ragged.of(shown)}

    def collate(self, columns: Columns, rows: np.ndarray) -> Any:
        support = columns["support"]
        assert isinstance(support, Ragged)
        return super().collate(columns, rows), torch.from_numpy(support.pad(rows)[0]).long()


class SupportedHead(StoryHead):
    """An architecture that chooses facts and scores the answers itself."""

    smooths = False

    def loss(self, encoder: Any, outputs: Any, target: Any) -> Tensor:
        return self.row_losses(encoder, outputs, target).mean()

    def row_losses(self, encoder: Any, outputs: Any, target: Any) -> Tensor:
        return encoder.objective(outputs, target)

    def class_scores(self, outputs: Any) -> Tensor:
        return outputs.scores


MAX_FACTS = 50
"""Facts of a story that are read, the newest (Sukhbaatar et al. 2015)."""


def story_as_text(row: Row, view: View) -> list[str]:
    """Question and newest facts as one text, for architectures that have no memory: as many facts
    as the view reads to their end, and at least one.

    They stand in the order they were told, and views cut at the end.
    """
    question, facts = [*words_of(row["question"]), "|"], [*map(words_of, row["facts"][-MAX_FACTS:])]
    oldest = 0
    while oldest < len(facts) - 1 and view.cuts([*question, *chain(*facts[oldest:])]):
        oldest += 1
    return [*question, *chain(*facts[oldest:])]


@register_problem(
    "answer",
    name="Story questions",
    columns=("facts", "question", "answer", "skill"),
    inputs=("facts", "question"),
    texts=("question",),
    cluster="story",
    stratum="skill",
    metrics=("skill_accuracy", "skills_solved"),
    survey="stories",
    forms={"facts": "texts", "answer": "name", "skill": "name"},
)
class AnswerProblem(Problem):
    """One word answers a question about ``facts``, texts in the order they were told; ``skill``
    says which ability the question tests. A prediction is the word."""

    heads: ClassVar = {
        "states": Classify,
        "vector": Classify,
        "class scores": Classify,
        "fact vector": StoryHead,
        "chosen facts": SupportedHead,
    }

    def fields(self, gives: str, view: View) -> Fields:
        if gives in ("fact vector", "chosen facts"):
            return {"facts": lambda row: row["facts"], "question": lambda row: [row["question"]]}
        return {"text": lambda row: story_as_text(row, view)}

    def target(self, gives: str) -> AnswerTarget:
        return SupportedTarget() if gives == "chosen facts" else AnswerTarget()

    floor_names = ("majority", "random", "newest word")

    def floors(self, train: Sequence[Row], rows: Sequence[Row]) -> dict[str, list[str]]:
        """The commonest answer, answers drawn as often as training shows them, and the last word of
        the newest fact."""
        newest = [[w for w in words_of(row["facts"][-1]) if w[:1].isalnum()][-1:] for row in rows]
        drawn = majority_and_random((row["answer"] for row in train), len(rows))
        return drawn | {"newest word": ["".join(words) for words in newest]}

    def right(self, row: Row) -> str:
        return row["answer"]

    def shortened(self, row: Row) -> Row:
        return super().shortened(row) | {"facts": [words_of(fact)[0] for fact in row["facts"][:1]]}

    def with_unknown_words(self, row: Row) -> Row:
        return super().with_unknown_words(row) | {"facts": [unknown(fact) for fact in row["facts"]]}

    def flipped(self, rows: Sequence[Row]) -> list[Row]:
        other = turned(row["answer"] for row in rows)
        return [row | {"answer": other[row["answer"]]} for row in rows]

    def properties(self, rows: Sequence[Row]) -> Properties:
        return {"skill": (lambda row: row["skill"], list(dict.fromkeys(row["skill"] for row in rows)))}
