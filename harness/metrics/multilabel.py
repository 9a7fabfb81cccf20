"""F1 of sets of labels."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from sklearn.metrics import f1_score
from sklearn.preprocessing import MultiLabelBinarizer

from harness.metrics.metric import TEXTS, Metric


class LabelSetF1(Metric):
    """F1 over all decisions (``micro_f1``), and the unweighted mean of the labels' F1
    (``macro_f1``), over the labels that occur in the references or in the predictions.

    Source: Pedregosa et al. 2011 (scikit-learn's ``f1_score``).
    """

    columns: ClassVar = {"predictions": TEXTS, "references": TEXTS}
    about = "predictions, references: the labels of each example"

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
