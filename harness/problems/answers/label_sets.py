"""Answers that are sets of labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from harness.metrics.label_sets import chosen
from harness.problems.answers.base import NOTHING, Answers
from harness.task import Row


class LabelSets(Answers):
    """The labels that a system says, of a prediction with their probabilities, in their order."""

    def text(self, prediction: Mapping[str, float], row: Row | None = None) -> str:
        return _joined(chosen(prediction)) or NOTHING

    def right(self, row: Row) -> str:
        return _joined(row["labels"]) or NOTHING

    def cell(self, prediction: Mapping[str, float]) -> str:
        return _joined(chosen(prediction))


def _joined(labels: Iterable[str]) -> str:
    return "; ".join(sorted(labels))
