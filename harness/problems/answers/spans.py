"""Answers that are spans of a passage."""

from __future__ import annotations

from harness.problems.answers.base import NOTHING, Answers
from harness.task import Row


class Spans(Answers):
    """A span as text; all that are accepted, each once, as the right answer."""

    def right(self, row: Row) -> str:
        return " / ".join(dict.fromkeys(row["answers"]["text"])) or NOTHING
