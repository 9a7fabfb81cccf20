"""Metrics of transcripts: errors over the whole corpus, not the mean of the utterances' rates."""

from __future__ import annotations

from collections.abc import Sequence

import datasets
import evaluate


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
    any reference unit has the number of insertions as its rate, as if it held one unit: 0 when
    nothing was predicted, and finite in any case.
    """
    errors = sum(map(edit_distance, references, predictions))
    return errors / max(1, sum(map(len, references)))


class _Transcripts(evaluate.Metric):
    """What metrics of one transcript per utterance take."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=type(self).__doc__ or "",
            citation="",
            inputs_description="predictions, references: one transcript per utterance",
            features=datasets.Features(
                {"predictions": datasets.Value("string"), "references": datasets.Value("string")}
            ),
        )


class WordErrorRate(_Transcripts):
    """Word errors per reference word; words are what white space separates, and case counts. See
    :func:`error_rate`."""

    def _compute(self, predictions: list[str], references: list[str]) -> dict[str, float]:
        return {"wer": error_rate([p.split() for p in predictions], [r.split() for r in references])}


class CharacterErrorRate(_Transcripts):
    """Character errors per reference character; a run of white space is one character, none at the
    ends. See :func:`error_rate`."""

    def _compute(self, predictions: list[str], references: list[str]) -> dict[str, float]:
        return {
            "cer": error_rate([" ".join(p.split()) for p in predictions], [" ".join(r.split()) for r in references])
        }
