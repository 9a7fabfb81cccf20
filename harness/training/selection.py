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
    return sign * score - TIE_BREAK * min(dev_loss if math.isfinite(dev_loss) else 10.0, 10.0)
