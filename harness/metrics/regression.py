"""Metrics of one number per example."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import ClassVar

import numpy as np
import scipy.stats

from harness.metrics.metric import NUMBER, Metric, NoNumber


def correlation(of: Callable[..., tuple[float, float]], predictions: list[float], references: list[float]) -> float:
    """Coefficient of correlation between predicted and actual numbers.

    That of predictions that are all the same is 0: they tell nothing. Raises ``ValueError`` where
    the actual numbers are all the same, as no prediction can follow them.
    """
    if np.ptp(references) == 0:
        raise ValueError(f"every actual score is {references[0]}, so there is no correlation to find")
    if np.ptp(predictions) == 0:
        return 0.0
    with warnings.catch_warnings():  # of predictions that are nearly the same
        warnings.simplefilter("ignore")
        return float(of(predictions, references)[0])


class Regression(Metric):
    """Pearson's r, Spearman's rank correlation and the mean squared error. Values: ``pearson``,
    ``spearman``, ``mse``. Source: Cer et al. 2017 (STS benchmark) for the first."""

    columns: ClassVar = {"predictions": NUMBER, "references": NUMBER}
    about = "predictions, references: one number per example"

    def _compute(self, predictions: list[float], references: list[float]) -> dict[str, float]:
        if not all(map(math.isfinite, predictions)):
            raise NoNumber("a prediction is not a finite number")
        return {
            "pearson": correlation(scipy.stats.pearsonr, predictions, references),
            "spearman": correlation(scipy.stats.spearmanr, predictions, references),
            "mse": float(np.mean(np.square(np.subtract(predictions, references)))),
        }
