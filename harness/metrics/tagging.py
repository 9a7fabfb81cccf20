"""Metrics of one tag per word: spans as in conlleval, and single tags."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from harness.metrics.metric import TEXTS, Metric

_PREFIXES = frozenset("BIESO")


def spans(tags: Sequence[str]) -> set[tuple[int, int, str]]:
    """Spans (first word, word after the last, type) that the tags of one sentence mark, in IOB2 or
    BIOES.

    Malformed sequences are accepted: B and S always begin a span; I and E continue an open span of
    the same type and begin one otherwise; E and S close it. Source: conlleval (Tjong Kim Sang),
    with the E and S of its later versions. The type may be missing, where there is but one. Raises
    ``ValueError`` for a tag that begins with none of O, B, I, E and S.
    """
    marked: set[tuple[int, int, str]] = set()
    start: int | None = None
    open_type = ""
    for i, tag in enumerate([*tags, "O"]):
        prefix, _, type_ = tag.partition("-")
        if prefix not in _PREFIXES:
            raise ValueError(f"tag {tag!r} marks no span: it is neither O nor B-, I-, E- or S- with a type")
        begins = prefix in "BS" or (prefix in "IE" and (start is None or type_ != open_type))
        if start is not None and (begins or prefix == "O"):
            marked.add((start, i, open_type))
            start = None
        if begins:
            start, open_type = i, type_
        if start is not None and prefix in "ES":
            marked.add((start, i + 1, open_type))
            start = None
    return marked


def _pairs(predictions: list[list[str]], references: list[list[str]]) -> list[tuple[list[str], list[str]]]:
    """Pairs of predicted and actual tags, after a check that each sentence has one tag per word."""
    for number, (predicted, actual) in enumerate(zip(predictions, references, strict=True), start=1):
        if len(predicted) != len(actual):
            raise ValueError(f"sentence {number} has {len(predicted)} predicted tags for {len(actual)} words")
    return list(zip(predictions, references, strict=True))


class _Tags(Metric):
    """Base of the metrics of one tag per word."""

    columns: ClassVar = {"predictions": TEXTS, "references": TEXTS}
    about = "predictions, references: the tags of each sentence"


class SpanF1(_Tags):
    """Precision, recall and F1 of spans over the whole corpus; a span is right if both ends and
    the type are.

    Values: ``span_f1``, ``span_precision``, ``span_recall``; each is 0 if its denominator is, as in
    conlleval. See :func:`spans`.
    """

    def _compute(self, predictions: list[list[str]], references: list[list[str]]) -> dict[str, float]:
        right = predicted = actual = 0
        for predicted_tags, actual_tags in _pairs(predictions, references):
            predicted_spans, actual_spans = spans(predicted_tags), spans(actual_tags)
            right += len(predicted_spans & actual_spans)
            predicted += len(predicted_spans)
            actual += len(actual_spans)
        return {
            "span_f1": 2 * right / (predicted + actual) if right else 0.0,
            "span_precision": right / predicted if right else 0.0,
            "span_recall": right / actual if right else 0.0,
        }


class TokenAccuracy(_Tags):
    """Share of words, over the whole corpus, with the right predicted tag."""

    def _compute(self, predictions: list[list[str]], references: list[list[str]]) -> dict[str, float]:
        pairs = _pairs(predictions, references)
        words = sum(len(actual) for _, actual in pairs)
        if not words:
            raise ValueError("no sentence has a word, so there is no tag to score")
        return {
            "token_accuracy": sum(p == r for predicted, actual in pairs for p, r in zip(predicted, actual, strict=True))
            / words
        }
