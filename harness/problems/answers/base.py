"""Answers that are texts: labels, spans, transcripts. The base of the other shapes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from harness.registry import ProblemEntry
from harness.task import Row

NOTHING = "(nothing)"


class Answers:
    """Wording of predictions and of right answers.

    A subclass for another shape says in :meth:`text` how a prediction reads, and in :meth:`right`
    how a right answer does where its column has another shape.
    """

    tagged: ClassVar[bool] = False
    """True where an answer names words of the text, each behind its place or word, as tags do."""

    def __init__(self, entry: ProblemEntry):
        self.entry = entry
        self.gold = next(iter(entry.answer_columns), None)
        """The column of the right answer: the first that no system reads."""

    def text(self, prediction: Any, row: Row | None = None) -> str | None:
        """A prediction for a row, which is None where it is not at hand; None for a prediction that
        cannot be worded."""
        # A plugin's problem may have answers of any shape, and need not say how they read.
        return prediction or NOTHING if isinstance(prediction, str) else None

    def right(self, row: Row) -> str | None:
        """The right answer to a row; None where no column has it."""
        return None if self.gold is None else self.text(row[self.gold], row)

    def cell(self, prediction: Any) -> str:
        """A prediction as a cell of a table for programs, where nothing is an empty text; JSON for
        a shape that nobody words."""
        return prediction if isinstance(prediction, str) else json.dumps(prediction, ensure_ascii=False)

    def certainty(self, probability: Any) -> float | None:
        """One number for the probability that a model gives its prediction, None for none."""
        return probability

    # Of a test unit, which is one row unless a problem says otherwise.

    def of_unit(self, unit: str, predictions: Mapping[str, Any], rows: Sequence[Row]) -> str | None:
        """The answer to a unit, from the predictions by example id. ``rows`` are those of the unit,
        none where they are not at hand."""
        if unit not in predictions:
            return None
        return self.text(predictions[unit], rows[0] if rows else None)

    def right_of_unit(self, rows: Sequence[Row]) -> str | None:
        """The right answer to a unit, as its rows say it."""
        return self.right(rows[0])
