"""Metrics of extracted answers, as in the official scripts of SQuAD 1.1 and 2.0 (Rajpurkar et al.
2016 and 2018)."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from statistics import fmean
from typing import ClassVar

from harness.metrics.metric import TEXT, TEXTS, Metric

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise(answer: str) -> str:
    """Answer in lower case, without ASCII punctuation and articles, with single spaces."""
    return " ".join(_ARTICLES.sub(" ", answer.lower().translate(_WITHOUT_PUNCTUATION)).split())


def golds(answers: Sequence[str]) -> list[str]:
    """Normalised answers that are not empty, or [""] if there is none, as in the script of SQuAD
    2.0."""
    return [gold for gold in map(normalise, answers) if gold] or [""]


def exact_match(prediction: str, answers: Sequence[str]) -> float:
    """1 if the prediction is one of the answers after normalisation, else 0."""
    return float(normalise(prediction) in golds(answers))


def f1(prediction: str, answers: Sequence[str]) -> float:
    """Best F1 of words, as multisets, against one of the answers; 1 or 0 if either side is
    empty."""
    return max(_word_f1(normalise(prediction).split(), gold.split()) for gold in golds(answers))


def _word_f1(predicted: list[str], gold: list[str]) -> float:
    if not predicted or not gold:
        return float(predicted == gold)
    return 2 * (Counter(predicted) & Counter(gold)).total() / (len(predicted) + len(gold))


class Squad(Metric):
    """Exact match and F1 over all questions. Values: ``exact_match``, ``f1``.

    Differs from the script of SQuAD 1.1 only where a prediction or a gold answer is empty after
    normalisation (3 of its 10,570 development questions have such a gold, "."): there the rules of
    SQuAD 2.0 hold for both.
    """

    columns: ClassVar = {"predictions": TEXT, "references": TEXTS}
    about = 'predictions: one answer, "" for none; references: the gold answers of a question, empty for none'

    def _compute(self, predictions: list[str], references: list[list[str]]) -> dict[str, float]:
        return {
            "exact_match": fmean(map(exact_match, predictions, references)),
            "f1": fmean(map(f1, predictions, references)),
        }


class Squad2(Squad):
    """The values of :class:`Squad`, also for answerable and unanswerable questions alone.

    Further values: ``exact_match_answerable`` and ``f1_answerable`` over the questions with an
    answer (HasAns in the official script), ``no_answer_accuracy`` over those without (NoAns). A
    value over no questions is left out.
    """

    def _compute(self, predictions: list[str], references: list[list[str]]) -> dict[str, float]:
        values = super()._compute(predictions, references)
        pairs = list(zip(predictions, references, strict=True))
        answerable = [(prediction, answers) for prediction, answers in pairs if answers]
        unanswerable = [(prediction, answers) for prediction, answers in pairs if not answers]
        if answerable:
            values["exact_match_answerable"] = fmean(exact_match(*pair) for pair in answerable)
            values["f1_answerable"] = fmean(f1(*pair) for pair in answerable)
        if unanswerable:
            values["no_answer_accuracy"] = fmean(exact_match(*pair) for pair in unanswerable)
        return values
