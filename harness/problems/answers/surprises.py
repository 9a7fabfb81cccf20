"""Answers that are the probability of a text."""

from __future__ import annotations

from collections.abc import Sequence

from harness.problems.answers.base import NOTHING, Answers
from harness.task import Row


class Surprises(Answers):
    """The mean surprise of a text's tokens; no column has a right one."""

    def text(self, prediction: Sequence[float], row: Row | None = None) -> str:
        total, tokens = prediction
        return f"{-total / tokens:.2f} nats per token" if tokens else NOTHING

    def cell(self, prediction: Sequence[float]) -> str:
        return " ".join(f"{each:.6g}" for each in prediction)
