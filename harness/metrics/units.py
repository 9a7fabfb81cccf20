"""Numerators and denominators of the metrics that are ratios of sums over test units."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from harness import registry
from harness.metrics.characters import characters_of
from harness.metrics.label_sets import chosen, precision_at
from harness.metrics.mentions import decisions
from harness.metrics.plugins import row_values
from harness.metrics.ranking import average_precision, first_choice, questions_by_group, reciprocal_rank
from harness.metrics.speech import edit_distance
from harness.metrics.squad import exact_match, f1
from harness.metrics.tagging import spans
from harness.task import Row


class UnitScores(NamedTuple):
    """The test units of a metric: ids, one row of each, and what each adds to the numerator and the
    denominator of the score."""

    units: list[str]
    rows: list[Row]
    numerators: list[float]
    denominators: list[float]


def has_units(metric: str) -> bool:
    """True for a metric that is a ratio of sums over test units; macro F1 and BLEU, say, are
    none."""
    if metric in {*_BY_QUESTION, *_BY_EXAMPLE, _BY_SKILL}:
        return True
    plugin = registry.entries("metrics").get(metric)
    return plugin is not None and plugin.per_row


def unit_scores(metric: str, predictions: Sequence[Any], rows: Sequence[Row]) -> UnitScores | None:
    """Scores of the test units; None for a metric that has none (:func:`has_units`)."""
    if not has_units(metric):
        return None
    if metric in _BY_QUESTION:
        return _by_question(metric, predictions, rows)
    if metric == _BY_SKILL:
        pairs = _by_skill(predictions, rows)
    elif metric in _BY_EXAMPLE:
        pairs = [_BY_EXAMPLE[metric](p, row) for p, row in zip(predictions, rows, strict=True)]
    else:
        plugin = registry.entries("metrics")[metric]
        pairs = [(value, 1.0) for value in row_values(plugin, predictions, rows)]
    numerators, denominators = (list(map(float, column)) for column in zip(*pairs, strict=True))
    return UnitScores([row["id"] for row in rows], list(rows), numerators, denominators)


def _by_question(metric: str, predictions: Sequence[float], rows: Sequence[Row]) -> UnitScores:
    questions = questions_by_group(
        [float(p) for p in predictions], [row["label"] == "1" for row in rows], [row["group"] for row in rows]
    )
    first: dict[str, Row] = {}
    for row in rows:
        first.setdefault(row["group"], row)
    values = [_BY_QUESTION[metric](question) for question in questions.values()]
    return UnitScores(list(questions), [first[group] for group in questions], values, [1.0] * len(questions))


def _by_skill(predictions: Sequence[str], rows: Sequence[Row]) -> list[tuple[float, float]]:
    """Right answers and 1, both over the number of the skill's questions: skills weigh alike."""
    sizes = Counter(row["skill"] for row in rows)
    return [
        ((p == row["answer"]) / sizes[row["skill"]], 1 / sizes[row["skill"]])
        for p, row in zip(predictions, rows, strict=True)
    ]


def _tokens(predicted: Sequence[str], actual: Sequence[str]) -> tuple[float, float]:
    return sum(p == a for p, a in zip(predicted, actual, strict=True)), len(actual)


def _accuracy(predicted: Any, row: Row) -> tuple[float, float]:
    return _tokens(predicted, row["tags"]) if "tags" in row else (predicted == row["label"], 1)


def _span_f1(predicted: Sequence[str], row: Row) -> tuple[float, float]:
    ours, theirs = spans(predicted), spans(row["tags"])
    return 2 * len(ours & theirs), len(ours) + len(theirs)


def _micro_f1(predicted: Any, row: Row) -> tuple[float, float]:
    ours, theirs = chosen(predicted), {*row["labels"]}
    return 2 * len(ours & theirs), len(ours) + len(theirs)


def _at(k: int) -> Callable[[Any, Row], tuple[float, float]]:
    return lambda predicted, row: (precision_at(k, predicted, row["labels"]), 1)


def _errors(predicted: Sequence[str], actual: Sequence[str]) -> tuple[float, float]:
    return edit_distance(actual, predicted), len(actual)


_BY_SKILL = "skill_accuracy"
_BY_QUESTION = {"map": average_precision, "mrr": reciprocal_rank, "choice_accuracy": first_choice}
_BY_EXAMPLE: dict[str, Callable[[Any, Row], tuple[float, float]]] = {
    "accuracy": _accuracy,
    "micro_f1": _micro_f1,
    **{f"precision_at_{k}": _at(k) for k in (1, 3, 5)},
    "mention_f1": lambda predicted, row: decisions(predicted, row["label"]),
    "token_accuracy": lambda predicted, row: _tokens(predicted, row["tags"]),
    "span_f1": _span_f1,
    "exact_match": lambda predicted, row: (exact_match(predicted, row["answers"]["text"]), 1),
    "f1": lambda predicted, row: (f1(predicted, row["answers"]["text"]), 1),
    "mse": lambda predicted, row: ((predicted - row["score"]) ** 2, 1),
    "wer": lambda predicted, row: _errors(predicted.split(), row["transcript"].split()),
    "nats_per_token": lambda predicted, row: (-predicted[0], predicted[1]),
    "bits_per_character": lambda predicted, row: (-predicted[0] / math.log(2), characters_of(row["text"])),
}
