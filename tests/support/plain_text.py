"""Batches of texts as a view of pieces or words reads them, and what is drawn for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.layers.noise import Noise
from harness.views.base import View


def batch(view: View, *texts: str) -> Any:
    """The texts as one batch of the view."""
    return view.collate(view.encode(list(texts)), np.arange(len(texts)))


def noise_of(pieces: Any, *key: int, progress: float = 1.0) -> Noise:
    """What is drawn for a batch: as in evaluation, or by the key (seed, number of the pass)."""
    return Noise(pieces.ids, pieces.mask, key, progress)
