"""Right answers to test units, as far as results show them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from harness.leaderboard.comparison import Comparison
from harness.metrics import display_info
from harness.metrics.information import PERCENT


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
