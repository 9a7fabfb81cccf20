"""Answers to test units as short texts: those of results, and the right ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

from harness.leaderboard.comparison import Comparison
from harness.leaderboard.examples import gold_column, plain, text_columns
from harness.metrics import display_info
from harness.metrics.information import PERCENT
from harness.registry import ProblemEntry
from harness.task import Row

NOTHING = "(nothing)"
OUTSIDE = "O"
"""Tag of a word that is in no span."""
RIGHT = "1"
"""Label of a candidate that answers its question."""


def answer_text(answer: Any, words: Sequence[str] | None = None) -> str | None:
    """A prediction or a right answer; None for one that is no text, tags or number.

    Tags stand behind their words, or behind the numbers of these from 1 where the words are not at
    hand; those outside of spans are left out.
    """
    if isinstance(answer, str):
        return answer or NOTHING
    if isinstance(answer, Mapping):  # the accepted spans of a passage
        return " / ".join(dict.fromkeys(answer["text"])) or NOTHING
    if isinstance(answer, Real) and not isinstance(answer, bool):
        return f"{float(answer):.3g}"
    if isinstance(answer, Sequence) and all(isinstance(tag, str) for tag in answer):
        names = words if words and len(words) == len(answer) else range(1, len(answer) + 1)
        tagged = (f"{name}/{tag}" for name, tag in zip(names, answer, strict=True) if tag != OUTSIDE)
        return " ".join(tagged) or NOTHING
    return None


def unit_answer(unit: str, predictions: Mapping[str, Any], rows: Sequence[Row], problem: ProblemEntry) -> str | None:
    """The answer to a unit, from the predictions by example id. ``rows`` are those of the unit,
    none where they are not at hand."""
    if unit in predictions:
        return answer_text(predictions[unit], _words(rows, problem))
    gold, scores = gold_column(problem), [predictions.get(row["id"]) for row in rows]
    if not rows or gold is None or not all(isinstance(score, Real) for score in scores):
        return None
    order = sorted(range(len(rows)), key=lambda i: -scores[i])  # type: ignore[operator]
    places = ", ".join(str(place) for place, i in enumerate(order, 1) if rows[i].get(gold) == RIGHT)
    return f"right at {places or 'no place'} of {len(rows)}; first: {_candidate(rows[order[0]], rows, problem)}"


def right_answer(unit: str, rows: Sequence[Row], problem: ProblemEntry) -> str | None:
    """The right answer to a unit, as its rows say it: all right candidates of a question."""
    gold = gold_column(problem)
    if gold is None:
        return None
    if [row["id"] for row in rows] == [unit]:
        return answer_text(rows[0][gold], _words(rows, problem))
    return " / ".join(_candidate(row, rows, problem) for row in rows if row[gold] == RIGHT) or NOTHING


def _words(rows: Sequence[Row], problem: ProblemEntry) -> Sequence[str] | None:
    texts = [rows[0].get(column) for column in problem.texts] if rows else []
    return next((text for text in texts if isinstance(text, list)), None)


def _candidate(row: Row, rows: Sequence[Row], problem: ProblemEntry) -> str:
    """The texts of a row that the other candidates of its question do not share."""
    own = [c for c in text_columns(problem) if c in row and any(other[c] != row[c] for other in rows)]
    return " ".join(plain(row[column]) for column in own) or row["id"]


def gold_by_answers(comparison: Comparison, said: Sequence[Sequence[str | None] | None]) -> list[str | None]:
    """The right answer of each unit, as far as the answers of the first seeds show it: the
    commonest of those with the best outcome, or, of two classes, the one that is not wrong.

    The spans of such tags are right, their prefixes need not be. ``said`` holds the answers of each
    result, None where they are not at hand.
    """
    info = display_info(comparison.metric)
    votes: list[Counter[str]] = [Counter() for _ in comparison.units]
    if info.unit != PERCENT:  # the best outcome of another metric is not known
        return [None] * len(votes)
    for seeds, answers in zip(comparison.outcomes, said, strict=True):
        first = seeds[0]
        best = (first.numerators == (0 if info.lower_is_better else first.denominators)).tolist()
        classes = first.confusion[0] if first.confusion else []
        for votes_of_unit, answer, is_right in zip(votes, answers or (), best, strict=False):
            if answer is not None and is_right:
                votes_of_unit[answer] += 1
            elif len(classes) == 2 and answer in classes:
                votes_of_unit[classes[1 - classes.index(answer)]] += 1
    return [max(found, key=found.__getitem__) if found else None for found in votes]
