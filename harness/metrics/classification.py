"""Metrics of one label per example."""

from __future__ import annotations

from collections import Counter
from statistics import fmean
from typing import ClassVar

from harness.metrics.metric import TEXT, Metric


class _Labels(Metric):
    """Base of the metrics of one label per example."""

    columns: ClassVar = {"predictions": TEXT, "references": TEXT}
    about = "predictions, references: one label per example"


class Accuracy(_Labels):
    """Share of examples whose predicted label is the right one."""

    def _compute(self, predictions: list[str], references: list[str]) -> dict[str, float]:
        return {"accuracy": sum(p == r for p, r in zip(predictions, references, strict=True)) / len(references)}


class MacroF1(_Labels):
    """Unweighted mean of the labels' F1, over the labels that occur in the references or in the
    predictions.

    Other labels of the task do not enter the mean. Source: Pedregosa
    et al. 2011 (scikit-learn's ``f1_score(average="macro")`` with its default labels).
    """

    def _compute(self, predictions: list[str], references: list[str]) -> dict[str, float]:
        predicted = Counter(predictions)
        actual = Counter(references)
        right = Counter(p for p, r in zip(predictions, references, strict=True) if p == r)
        return {
            "macro_f1": fmean(2 * right[label] / (predicted[label] + actual[label]) for label in predicted | actual)
        }
