"""Answers that are scores of a question's candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.problems.answers.base import NOTHING, Answers
from harness.problems.answers.numbers import Numbers
from harness.task import Row

RIGHT = "1"
"""Label of a candidate that answers its question."""


class Candidates(Numbers):
    """The candidate that is put first, and the places of the right ones; a unit is a question."""

    def right(self, row: Row) -> str | None:
        return Answers.text(self, row["label"])

    def of_unit(self, unit: str, predictions: Mapping[str, Any], rows: Sequence[Row]) -> str | None:
        if unit in predictions:  # of a corpus without questions: each row is one
            return super().of_unit(unit, predictions, rows)
        if not rows or any(row["id"] not in predictions for row in rows):
            return None
        order = sorted(range(len(rows)), key=lambda i: -predictions[rows[i]["id"]])
        places = ", ".join(str(place) for place, i in enumerate(order, 1) if rows[i]["label"] == RIGHT)
        return f"right at {places or 'no place'} of {len(rows)}; first: {self._own_text(rows[order[0]], rows)}"

    def right_of_unit(self, rows: Sequence[Row]) -> str | None:
        return " / ".join(self._own_text(row, rows) for row in rows if row["label"] == RIGHT) or NOTHING

    def _own_text(self, row: Row, rows: Sequence[Row]) -> str:
        """The texts of a row that the other candidates of its question do not share."""
        own = [row[name] for name in self.entry.texts if any(other[name] != row[name] for other in rows)]
        return " ".join(text if isinstance(text, str) else " ".join(text) for text in own) or row["id"]
