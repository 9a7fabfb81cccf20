"""Answers that are numbers."""

from __future__ import annotations

from typing import Any

from harness.problems.answers.base import Answers
from harness.task import Row


class Numbers(Answers):
    """A number, with three digits and all before the point for a reader, and with the seven of 32
    bits for a program."""

    def text(self, prediction: Any, row: Row | None = None) -> str:
        number = float(prediction)
        return f"{number:.3g}" if abs(number) < 999.5 else f"{number:.1f}"

    def cell(self, prediction: Any) -> str:
        return f"{prediction:.7g}"
