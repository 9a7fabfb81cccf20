"""Metrics of transcripts: errors over the whole corpus, not the mean of the utterances' rates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from harness.metrics.metric import TEXT, Metric


def edit_distance(source: Sequence[str], target: Sequence[str]) -> int:
    """Fewest substitutions, insertions and deletions that turn one sequence into the other
    (Levenshtein 1966)."""
    row = list(range(len(target) + 1))
    for i, a in enumerate(source, start=1):
        diagonal, row[0] = row[0], i
        for j, b in enumerate(target, start=1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (a != b))
    return row[-1]


def error_rate(predictions: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> float:
    """Sum of edit distances over the sum of the references' lengths.

    An empty reference adds its insertions to the errors and nothing to the length. A corpus without
    any reference unit counts as one of length 1, so that the rate is finite: 0 without predictions,
    else the number of insertions.
    """
    errors = sum(map(edit_distance, references, predictions))
    return errors / max(1, sum(map(len, references)))


class _Transcripts(Metric):
    """Base of the metrics of one transcript per utterance."""

    columns: ClassVar = {"predictions": TEXT, "references": TEXT}
    about = "predictions, references: one transcript per utterance"


class WordErrorRate(_Transcripts):
    """Word errors per reference word (:func:`error_rate`). Words are separated by white space and
    case counts."""

    def _compute(self, predictions: list[str], references: list[str]) -> dict[str, float]:
        return {"wer": error_rate([p.split() for p in predictions], [r.split() for r in references])}


class CharacterErrorRate(_Transcripts):
    """Character errors per reference character (:func:`error_rate`). A run of white space is one
    character; white space at the ends is removed."""

    def _compute(self, predictions: list[str], references: list[str]) -> dict[str, float]:
        return {
            "cer": error_rate([" ".join(p.split()) for p in predictions], [" ".join(r.split()) for r in references])
        }
