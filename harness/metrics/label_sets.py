"""The labels that a prediction says, and how many of the most probable ones are right.

A prediction is a dict from label to its probability, which need not have the labels that are
improbable.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping


def chosen(prediction: Mapping[str, float]) -> set[str]:
    """The labels that are more probable than not: those that a system says a text has."""
    return {label for label, probability in prediction.items() if probability > 0.5}


def precision_at(k: int, prediction: Mapping[str, float], labels: Collection[str]) -> float:
    """Share of right labels among the ``k`` most probable ones.

    Of labels that are equally probable, each order counts alike. Labels that a prediction does not
    have are wrong, and a text with fewer than ``k`` labels cannot have all of them right. Source:
    Liu et al. 2017 (XML-CNN), section 4.3.
    """
    alike: dict[float, list[str]] = defaultdict(list)
    for label, probability in prediction.items():
        alike[probability].append(label)
    places, right = k, 0.0
    for probability in sorted(alike, reverse=True):
        taken = min(places, len(alike[probability]))
        right += taken / len(alike[probability]) * sum(label in labels for label in alike[probability])
        places -= taken
    return right / k
