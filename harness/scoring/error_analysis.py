"""Test predictions looked at closely: the outcome of every unit, and where the errors lie."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any

import numpy as np

from harness.metrics.tagging import spans
from harness.metrics.units import Parts, parts
from harness.records.outcomes import Outcomes, Slice, ratio
from harness.task import Row
from harness.views.base import words_of

TEXTS = {
    "classify": ("text",),
    "match": ("first", "second"),
    "rank": ("first",),
    "tag": ("text",),
    "extract": ("question",),
    "answer": ("question",),
    "transcribe": ("transcript",),
}
"""What a unit's length and unknown words are counted in, by task type; texts that all candidates
share are left out."""
QUESTION_WORDS = ("what", "who", "when", "where", "which", "why", "how")
LENGTHS = (5, 10, 20, 40)
"""The longest text of each part but the last, in words."""
UNKNOWN_SHARES = (0.0, 0.1, 0.25)
"""The largest share of unknown words of each part but the last."""


def known_words(type: str, train: Iterable[Row]) -> frozenset[str]:
    """Words, in lower case, of the rows that a model was trained on; none where rows have no
    texts."""
    return frozenset(word for row in train if _has_text(type, row) for word in _words(type, row))


def outcomes(
    type: str, metric: str, predictions: Sequence[Any], rows: Sequence[Row], known: Container[str] | None
) -> Outcomes | None:
    """Outcomes of the predictions for the test rows, in their order; None where the metric has no
    parts.

    ``known`` are the :func:`known_words` of the model's training rows, None where those are not at
    hand.
    """
    found = parts(metric, predictions, rows)
    if found is None:
        return None
    numerators, denominators = np.array(found.numerators), np.array(found.denominators)
    slices = {
        name: _parts_of(list(map(part, found.rows)), order, numerators, denominators)
        for name, (part, order) in _properties(type, found, known).items()
    }
    confusion = None
    if type in ("classify", "match"):
        confusion = _confusion([row["label"] for row in rows], predictions)
    if metric == "span_f1":
        slices["entity type"] = _by_entity_type(predictions, rows)
    return Outcomes(metric, found.units, numerators, denominators, slices, confusion)


def _properties(
    type: str, found: Parts, known: Container[str] | None
) -> dict[str, tuple[Callable[[Row], str], Sequence[str]]]:
    """How each property of a unit is read from its row, and its values in the order to be shown."""

    def length(row: Row) -> str:
        return _length_names()[sum(len(_words(type, row)) > most for most in LENGTHS)]

    def unknown(row: Row) -> str:
        words = _words(type, row)
        share = sum(word not in known for word in words) / max(1, len(words))
        return _share_names()[sum(share > most for most in UNKNOWN_SHARES)]

    properties: dict[str, tuple[Callable[[Row], str], Sequence[str]]] = {}
    if _has_text(type, found.rows[0]):
        properties["length in words"] = (length, _length_names())
        if known is not None:
            properties["unknown words"] = (unknown, _share_names())
    if type in ("classify", "match"):
        properties["class"] = (lambda row: row["label"], sorted({row["label"] for row in found.rows}))
    if type == "answer":
        properties["skill"] = (lambda row: row["skill"], list(dict.fromkeys(row["skill"] for row in found.rows)))
    if type in ("extract", "rank"):
        properties["question word"] = (lambda row: _question_word(_words(type, row)), (*QUESTION_WORDS, "other"))
    return properties


def _has_text(type: str, row: Row) -> bool:
    """A recording that is classified has none."""
    return all(column in row for column in TEXTS[type])


def _words(type: str, row: Row) -> list[str]:
    return [word.lower() for column in TEXTS[type] for word in words_of(row[column])]


def _question_word(words: Sequence[str]) -> str:
    return next((word for word in words if word in QUESTION_WORDS), "other")


def _length_names() -> list[str]:
    ranges = [f"{most + 1} to {following}" for most, following in itertools.pairwise(LENGTHS)]
    return [f"up to {LENGTHS[0]}", *ranges, f"more than {LENGTHS[-1]}"]


def _share_names() -> list[str]:
    percents = [f"{100 * share:.0f} %" for share in UNKNOWN_SHARES]
    return ["none", *(f"up to {percent}" for percent in percents[1:]), f"more than {percents[-1]}"]


def _parts_of(values: list[str], order: Sequence[str], numerators: np.ndarray, denominators: np.ndarray) -> list[Slice]:
    """Units and score of each part that has any."""
    found: list[Slice] = []
    for part in order:
        where = np.array(values) == part
        if where.any():
            score = ratio(numerators[where], denominators[where]) if denominators[where].any() else None
            found.append((part, int(where.sum()), score))
    return found


def _confusion(actual: Sequence[str], predicted: Sequence[str]) -> tuple[list[str], list[list[int]]]:
    labels = sorted({*actual, *predicted})
    number = {label: i for i, label in enumerate(labels)}
    counts = np.zeros((len(labels), len(labels)), dtype=int)
    for a, p in zip(actual, predicted, strict=True):
        counts[number[a], number[p]] += 1
    return labels, counts.tolist()


def _by_entity_type(predictions: Sequence[Sequence[str]], rows: Sequence[Row]) -> list[Slice]:
    """F1 of each type of span, with the number of actual spans of it."""
    right, predicted, actual = defaultdict(int), defaultdict(int), defaultdict(int)
    for tags, row in zip(predictions, rows, strict=True):
        ours, theirs = spans(tags), spans(row["tags"])
        for counts, found in ((right, ours & theirs), (predicted, ours), (actual, theirs)):
            for *_, type in found:
                counts[type] += 1
    return [
        (type, actual[type], 2 * right[type] / (predicted[type] + actual[type]))
        for type in sorted({*predicted, *actual})
    ]
