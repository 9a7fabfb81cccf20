"""Metrics of sets of labels. A prediction is a dict from label to its probability, which need not
have the labels that are improbable."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

import datasets
import evaluate
import numpy as np
from sklearn.metrics import f1_score
from sklearn.preprocessing import MultiLabelBinarizer


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


class LabelSetF1(evaluate.Metric):
    """F1 over all decisions (``micro_f1``), and the unweighted mean of the labels' F1
    (``macro_f1``), over the labels that occur in the references or in the predictions.

    Source: Pedregosa et al. 2011 (scikit-learn's ``f1_score``).
    """

    def _info(self) -> evaluate.MetricInfo:
        labels = datasets.Sequence(datasets.Value("string"))
        return evaluate.MetricInfo(
            description=type(self).__doc__ or "",
            citation="",
            inputs_description="predictions, references: the labels of each example",
            features=datasets.Features({"predictions": labels, "references": labels}),
        )

    def _compute(self, predictions: list[list[str]], references: list[list[str]]) -> dict[str, float]:
        binarizer = MultiLabelBinarizer().fit([*predictions, *references])
        if not len(binarizer.classes_):
            raise ValueError("no example has a label, and none is predicted, so there is no F1")
        # An empty column more, since scikit-learn reads a single label as two classes.
        actual, predicted = (np.pad(binarizer.transform(sets), ((0, 0), (0, 1))) for sets in (references, predictions))
        labels = range(len(binarizer.classes_))
        return {
            f"{average}_f1": float(f1_score(actual, predicted, labels=labels, average=average, zero_division=0))
            for average in ("micro", "macro")
        }
