"""Metrics of ranked candidates, where equal scores count as the mean over all their orders.

A model that gives every candidate the same score has ranked nothing, but the order of the WikiQA
file would give it a MAP of .64. Therefore a tie counts as the exact mean over the orders of its
members, in closed form (McSherry and Najork 2008, "Computing Information Retrieval Performance
Measures Efficiently in the Presence of Tied Scores").
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from statistics import fmean
from typing import ClassVar, NamedTuple

from harness.metrics.metric import COUNT, NUMBER, TEXT, Metric, NoNumber


class Question(NamedTuple):
    """Scores of the candidates of one question, and a truth value for each."""

    scores: list[float]
    right: list[bool]


def questions_by_group(scores: Sequence[float], right: Sequence[int], groups: Sequence[str]) -> dict[str, Question]:
    """Questions by id that have at least one right candidate, made from one score, one truth and
    one question id per candidate."""
    by_group: dict[str, Question] = {}
    for value, truth, group in zip(scores, right, groups, strict=True):
        if math.isnan(value):
            raise NoNumber(f"a candidate of question {group} has the score NaN; a score must be a number")
        question = by_group.setdefault(group, Question([], []))
        question.scores.append(value)
        question.right.append(bool(truth))
    return {group: question for group, question in by_group.items() if any(question.right)}


def questions(scores: Sequence[float], right: Sequence[int], groups: Sequence[str]) -> list[Question]:
    """The questions of :func:`questions_by_group` without their ids."""
    return list(questions_by_group(scores, right, groups).values())


class _Tie(NamedTuple):
    """Candidates with the same score: number and number of right ones, of the candidates above them
    and of their own."""

    above: int
    right_above: int
    size: int
    right: int


def _ties(question: Question) -> Iterator[_Tie]:
    above = right_above = 0
    ranked = sorted(zip(question.scores, question.right, strict=True), reverse=True)
    for _, members in groupby(ranked, key=lambda candidate: candidate[0]):
        truths = [truth for _, truth in members]
        yield _Tie(above, right_above, len(truths), sum(truths))
        above += len(truths)
        right_above += sum(truths)


def average_precision(question: Question) -> float:
    """Mean over the right candidates of the precision at their rank; the expected value if
    scores are equal.

    At the i-th of the g places of a tie with r right members stands a right one with probability r
    / g, and then (i - 1)(r - 1) / (g - 1) of the places before it are expected to be right.
    """
    total = 0.0
    for tie in _ties(question):
        share = (tie.right - 1) / (tie.size - 1) if tie.size > 1 else 0.0
        for before in range(tie.size):
            precision = (tie.right_above + 1 + before * share) / (tie.above + before + 1)
            total += tie.right / tie.size * precision
    return total / sum(question.right)


def reciprocal_rank(question: Question) -> float:
    """One over the rank of the first right candidate; the expected value if scores are equal.

    Of the C(g, r) ways to place the r right members of a tie of g, C(g - i, r - 1) have the first
    of them at place i.
    """
    tie = next(tie for tie in _ties(question) if tie.right)
    ways = math.comb(tie.size, tie.right)
    return math.fsum(
        math.comb(tie.size - place, tie.right - 1) / ways / (tie.above + place)
        for place in range(1, tie.size - tie.right + 2)
    )


def first_choice(question: Question) -> float:
    """Share of right candidates among those with the highest score: 1 or 0 where no scores are
    equal."""
    tie = next(_ties(question))
    return tie.right / tie.size


class Ranking(Metric):
    """MAP and MRR over the questions with at least one right candidate (243 in the test split of
    WikiQA).

    Values: ``map``, ``mrr``. Source: Yang et al. 2015 (WikiQA), section 4.
    """

    columns: ClassVar = {"predictions": NUMBER, "references": COUNT, "groups": TEXT}
    about = "predictions: score of each candidate; references: 1 right, 0 wrong; groups: its question's id"

    def _compute(self, predictions: list[float], references: list[int], groups: list[str]) -> dict[str, float]:
        return _means(questions(predictions, references, groups), suffix="", kept="a right candidate")


class Ranking237(Ranking):
    """MAP and MRR over the questions with right and wrong candidates both (237 in the test split of
    WikiQA).

    Where every candidate is right, every order is perfect. Values: ``map_237``, ``mrr_237``.
    Source: the set that papers on WikiQA after Yang et al. 2015 mostly score.
    """

    def _compute(self, predictions: list[float], references: list[int], groups: list[str]) -> dict[str, float]:
        mixed = [question for question in questions(predictions, references, groups) if not all(question.right)]
        return _means(mixed, suffix="_237", kept="both a right and a wrong candidate")


class ChoiceAccuracy(Ranking):
    """Share of the questions whose highest score is that of a right candidate, as a test of several
    choices is marked; a tie of k choices, one of them right, earns 1/k.

    Questions without a right candidate are left out. Values: ``choice_accuracy``. Source: Clark et
    al. 2016 ("Combining Retrieval, Statistics, and Inference to Answer Elementary Science
    Questions").
    """

    def _compute(self, predictions: list[float], references: list[int], groups: list[str]) -> dict[str, float]:
        kept = questions(predictions, references, groups)
        if not kept:
            raise ValueError("no question has a right candidate, so there is nothing to choose")
        return {"choice_accuracy": fmean(map(first_choice, kept))}


def _means(kept_questions: list[Question], suffix: str, kept: str) -> dict[str, float]:
    if not kept_questions:
        raise ValueError(f"no question has {kept}, so there is nothing to rank")
    return {
        f"map{suffix}": fmean(map(average_precision, kept_questions)),
        f"mrr{suffix}": fmean(map(reciprocal_rank, kept_questions)),
    }
