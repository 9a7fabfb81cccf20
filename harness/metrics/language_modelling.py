"""Metrics of next-token predictions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from harness.metrics.metric import COUNT, NUMBER, Metric, NoNumber


def nats_per_token(sums: Sequence[float], counts: Sequence[int]) -> float:
    """Mean negative log-likelihood per token over the whole corpus.

    ``sums`` are each text's sum of natural log-probabilities, ``counts`` its number of predicted
    tokens. Raises ``ValueError`` if there is no token or the exponential is not a finite number.
    """
    tokens = sum(counts)
    if not tokens:
        raise ValueError("no text has a token, so there is no perplexity")
    nats = -sum(sums) / tokens
    if not nats < 700:
        raise NoNumber(f"the mean negative log-likelihood per token is {nats}; its exponential is not a finite number")
    return nats


class NatsPerToken(Metric):
    """Mean negative log-likelihood per token; see :func:`nats_per_token`."""

    columns: ClassVar = {"predictions": NUMBER, "references": COUNT}
    about = "predictions: sum of log-probabilities of each text; references: its number of tokens"

    def _compute(self, predictions: list[float], references: list[int]) -> dict[str, float]:
        return {"nats_per_token": nats_per_token(predictions, references)}


class Perplexity(NatsPerToken):
    """Exponential of :func:`nats_per_token`."""

    def _compute(self, predictions: list[float], references: list[int]) -> dict[str, float]:
        return {"perplexity": math.exp(nats_per_token(predictions, references))}
