"""Scores of predictions against the rows they were made for.

Importing this package is cheap: :mod:`evaluate` (which brings in transformers and torch where they
are installed) is imported when the first score is computed. What a prediction looks like, by task
type:

================ ===================================================================
classify, match  the label
rank             the candidate's score, a number; higher is better
tag              one tag per word
extract          the answer as text; "" says that there is none
answer           the word
transcribe       the transcript
language model   [sum of the tokens' natural log-probabilities, number of tokens]
================ ===================================================================
"""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

from harness.errors import UnknownName, did_you_mean
from harness.task import Row

Compute = Callable[[Sequence[Any], Sequence[Row]], dict[str, float]]

LOWER_IS_BETTER = frozenset({"wer", "cer", "perplexity"})


def score(names: Sequence[str], predictions: Sequence[Any], rows: Sequence[Row]) -> dict[str, float]:
    """Value of every named metric, and of those that come with it (``span_f1`` brings precision and
    recall).

    Values are fractions; ``wer`` and ``cer`` may exceed 1, ``perplexity`` is at least 1.
    ``predictions`` and ``rows`` are in the same order. Values that are undefined on these rows
    (``f1_answerable`` where nothing can be answered) are left out. Raises
    :class:`~harness.registry.UnknownName`, or ``ValueError`` when predictions do not fit the rows.
    """
    if len(predictions) != len(rows):
        raise ValueError(f"{len(predictions)} predictions for {len(rows)} rows")
    if not rows:
        raise ValueError("no rows to score")
    values: dict[str, float] = {}
    for name in names:
        if name not in values:
            values |= _metric(name)(predictions, rows)
    return values


def better(metric: str, a: float, b: float) -> bool:
    """Whether ``a`` is strictly better than ``b``; raises
    :class:`~harness.registry.UnknownName`."""
    _metric(metric)
    return a < b if metric in LOWER_IS_BETTER else a > b


def _metric(name: str) -> Compute:
    if name not in METRICS:
        others = did_you_mean(name, METRICS, f"there are {', '.join(METRICS)}")
        raise UnknownName(f"no metric is called {name!r}; {others}")
    return METRICS[name]


def _compute(module: str, name: str, **columns: list[Any]) -> dict[str, float]:
    """Construct one ``evaluate.Metric`` of this package and compute it in memory, without leaving
    files in the user's cache."""
    metric = getattr(importlib.import_module(f"harness.metrics.{module}"), name)
    with tempfile.TemporaryDirectory(prefix="archbench-metric-") as folder:
        return metric(keep_in_memory=True, cache_dir=folder).compute(**columns)


def _column(rows: Sequence[Row], column: str) -> list[Any]:
    try:
        if hasattr(
            rows, "column_names"
        ):  # a data set: its rows come out of Arrow a hundred times as slowly as a column
            return rows[column][:]
        return [row[column] for row in rows]
    except KeyError:
        raise ValueError(f"this metric needs rows with the column {column!r}; found {', '.join(rows[0])}") from None


def _against(column: str, module: str, name: str) -> Compute:
    """A metric that compares predictions with one column of the rows."""
    return lambda predictions, rows: _compute(
        module, name, predictions=list(predictions), references=_column(rows, column)
    )


_token_accuracy = _against("tags", "tagging", "TokenAccuracy")


def _accuracy(predictions: Sequence[Any], rows: Sequence[Row]) -> dict[str, float]:
    """Share of right labels; of right tags, over all words, where rows have tags (part-of-speech
    accuracy)."""
    if "tags" in rows[0]:
        return {"accuracy": _token_accuracy(predictions, rows)["token_accuracy"]}
    return _compute("classification", "Accuracy", predictions=list(predictions), references=_column(rows, "label"))


def _ranking(name: str) -> Compute:
    def compute(predictions: Sequence[Any], rows: Sequence[Row]) -> dict[str, float]:
        labels = _column(rows, "label")
        wrong = set(labels) - {"0", "1"}
        if wrong:
            raise ValueError(f'label {wrong.pop()!r} in a rank task; "1" is right and "0" is wrong')
        scores = [float(score) for score in predictions]
        return _compute(
            "ranking",
            name,
            predictions=scores,
            references=[int(label) for label in labels],
            groups=_column(rows, "group"),
        )

    return compute


def _extract(name: str) -> Compute:
    def compute(predictions: Sequence[Any], rows: Sequence[Row]) -> dict[str, float]:
        return _compute(
            "squad", name, predictions=list(predictions), references=[list(a["text"]) for a in _column(rows, "answers")]
        )

    return compute


def _by_skill(predictions: Sequence[Any], rows: Sequence[Row]) -> dict[str, float]:
    columns = {"references": _column(rows, "answer"), "skills": _column(rows, "skill")}
    return _compute("stories", "SkillAccuracy", predictions=list(predictions), **columns)


def _perplexity(predictions: Sequence[Any], rows: Sequence[Row]) -> dict[str, float]:
    sums, counts = zip(*predictions, strict=True)
    return _compute("language_modelling", "Perplexity", predictions=list(sums), references=list(counts))


METRICS: dict[str, Compute] = {
    "accuracy": _accuracy,
    "macro_f1": _against("label", "classification", "MacroF1"),
    "map": _ranking("Ranking"),
    "mrr": _ranking("Ranking"),
    "map_237": _ranking("Ranking237"),
    "mrr_237": _ranking("Ranking237"),
    "span_f1": _against("tags", "tagging", "SpanF1"),
    "span_precision": _against("tags", "tagging", "SpanF1"),
    "span_recall": _against("tags", "tagging", "SpanF1"),
    "token_accuracy": _token_accuracy,
    "exact_match": _extract("Squad"),
    "f1": _extract("Squad"),
    "exact_match_answerable": _extract("Squad2"),
    "f1_answerable": _extract("Squad2"),
    "no_answer_accuracy": _extract("Squad2"),
    "skill_accuracy": _by_skill,
    "skills_solved": _by_skill,
    "wer": _against("transcript", "speech", "WordErrorRate"),
    "cer": _against("transcript", "speech", "CharacterErrorRate"),
    "perplexity": _perplexity,
}
