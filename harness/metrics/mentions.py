"""F1 of what a pronoun stands for."""

from __future__ import annotations

from typing import ClassVar

from harness.mentions import NEITHER
from harness.metrics.metric import TEXT, Metric

PRONOUNS = {
    "feminine": frozenset({"she", "her", "hers", "herself"}),
    "masculine": frozenset({"he", "him", "his", "himself"}),
}


class MentionF1(Metric):
    """F1 over the decisions, for each candidate of a pronoun, that it is meant; at most one of a
    row is.

    Values: ``mention_f1``, and of the rows whose pronoun is feminine or masculine
    ``mention_f1_feminine`` and ``mention_f1_masculine``, left out where there are none. Where
    nothing is meant or said it is 0. Source: Webster et al. 2018 (GAP), section 4.1.
    """

    columns: ClassVar = {"predictions": TEXT, "references": TEXT, "pronouns": TEXT}
    about = "predictions, references: the name of the candidate, or neither; pronouns"

    def _compute(self, predictions: list[str], references: list[str], pronouns: list[str]) -> dict[str, float]:
        rows = list(zip(predictions, references, pronouns, strict=True))
        parts = {"mention_f1": rows}
        for gender, forms in PRONOUNS.items():
            parts[f"mention_f1_{gender}"] = [row for row in rows if row[2].lower() in forms]
        return {name: _f1(part) for name, part in parts.items() if part}


def decisions(predicted: str, actual: str) -> tuple[float, float]:
    """The parts of a row in the numerator and in the denominator of the F1."""
    return 2 * (predicted == actual != NEITHER), (predicted != NEITHER) + (actual != NEITHER)


def _f1(rows: list[tuple[str, str, str]]) -> float:
    right, counted = map(sum, zip(*(decisions(predicted, actual) for predicted, actual, _ in rows), strict=True))
    return right / counted if counted else 0.0
