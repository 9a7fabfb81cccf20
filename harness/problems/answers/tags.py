"""Answers that are a tag for each word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from harness.problems.answers.base import NOTHING, Answers
from harness.task import Row

OUTSIDE = "O"
"""Tag of a word that is in no span."""


class Tags(Answers):
    """Each word before its tag, or the word's number from 1 where words are not at hand; those
    outside of spans are left out."""

    tagged: ClassVar = True

    def text(self, prediction: Sequence[str], row: Row | None = None) -> str:
        words = row["text"] if row else ()
        names = words if len(words) == len(prediction) else range(1, len(prediction) + 1)
        tagged = (f"{name}/{tag}" for name, tag in zip(names, prediction, strict=True) if tag != OUTSIDE)
        return " ".join(tagged) or NOTHING

    def cell(self, prediction: Sequence[str]) -> str:
        return " ".join(prediction)

    def certainty(self, probability: Any) -> float | None:
        """The least of the tags' probabilities."""
        return min(probability) if probability else None
