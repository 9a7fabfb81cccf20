"""The number by which epochs and learning rates are compared on dev."""

from __future__ import annotations

import math

from harness.metrics import info

TIE_BREAK = 1e-5
"""Weight of the dev loss beside the dev metric: of epochs (or learning rates) with equal scores,
the one with the smaller loss is better.

Without it, a transcriber whose error rate stays at 1 while its loss falls would be stopped before
it says its first word.
"""


def selection(metric: str, score: float, dev_loss: float) -> float:
    """A score of dev with its sign turned where lower is better, less the loss as a tie-break: the
    higher, the better. A loss that is not finite loses every tie."""
    sign = -1.0 if info(metric).lower_is_better else 1.0
    return sign * score - TIE_BREAK * _below_ten(dev_loss)


def _below_ten(loss: float) -> float:
    """A loss up to 9, and a larger one between 9 and 10, in the same order: a sum over a thousand
    labels must not outweigh the metric. One that is not finite is 10."""
    if not math.isfinite(loss):
        return 10.0
    return loss if loss <= 9.0 else 10.0 - 1.0 / (loss - 8.0)
