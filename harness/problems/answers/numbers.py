"""Answers that are numbers."""

from __future__ import annotations

from typing import Any

from harness.problems.answers.base import Answers
from harness.task import Row


class Numbers(Answers):
    """A number, with three digits for a reader and six for a program."""

    def text(self, prediction: Any, row: Row | None = None) -> str:
        return f"{float(prediction):.3g}"

    def cell(self, prediction: Any) -> str:
        return f"{prediction:.6g}"
