"""Metric of next-token predictions."""

from __future__ import annotations

import math

import datasets
import evaluate


class Perplexity(evaluate.Metric):
    """Exponential of the mean negative log-likelihood per token, over the whole corpus.

    Predictions are each text's sum of natural log-probabilities, references its number of predicted
    tokens. Raises ``ValueError`` where there is no token or the value is not a finite number.
    """

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=type(self).__doc__ or "",
            citation="",
            inputs_description="predictions: sum of log-probabilities of each text; references: its number of tokens",
            features=datasets.Features(
                {"predictions": datasets.Value("float64"), "references": datasets.Value("int64")}
            ),
        )

    def _compute(self, predictions: list[float], references: list[int]) -> dict[str, float]:
        tokens = sum(references)
        if not tokens:
            raise ValueError("no text has a token, so there is no perplexity")
        surprise = -sum(predictions) / tokens
        if not surprise < 700:
            raise ValueError(
                f"the mean negative log-likelihood per token is {surprise}; its exponential is not a finite number"
            )
        return {"perplexity": math.exp(surprise)}
