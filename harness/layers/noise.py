"""Random numbers that belong to a text: the same in whichever batch and on however many devices it
stands."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

GOLDEN = -7046029254386353131
"""The golden ratio as a fraction of 2^64 (Steele et al. 2014, SplitMix), of a signed number."""
MULTIPLIERS = (-4658895280553007687, -7723592293110705685)
SHIFTS = (30, 27, 31)
BITS = 24
"""Bits of a number between 0 and 1: as many as one of 32 bits has."""


def mixed(numbers: Tensor) -> Tensor:
    """Whole numbers of 64 bits, each bit of which depends on all of those that went in (SplitMix's
    last steps)."""
    for shift, multiplier in zip(SHIFTS, (*MULTIPLIERS, 1), strict=True):
        high = (numbers >> shift) & ((1 << (64 - shift)) - 1)  # torch's shift would copy the sign down
        numbers = (numbers ^ high) * multiplier
    return numbers


class Noise:
    """Numbers in [0, 1) for each of B texts, from its units ``ids`` (B, T), true in ``mask``, and
    from ``key`` alone.

    The key is what should make a difference beside the text: (seed, number of the pass over the
    data), or nothing in evaluation; ``anew`` is true where there is one. ``progress`` is the share
    of the training that is done, 1 in evaluation, for whoever asks other things later in a
    training; the numbers do not depend on it. Each call of :meth:`uniform` gives other numbers.
    """

    def __init__(self, ids: Tensor, mask: Tensor, key: Sequence[int] = (), progress: float = 1.0):
        places = torch.arange(ids.shape[1], device=ids.device)
        self.texts = (mixed(ids * MULTIPLIERS[0] + places * GOLDEN) * mask).sum(1)
        seed = np.random.SeedSequence([1, *key]).generate_state(1, np.uint64).astype(np.int64)
        self.key = int(seed[0])
        self.anew, self.progress = bool(key), progress
        self.calls = torch.zeros_like(self.texts[:1])  # no Python number, whose product would not wrap around

    def uniform(self, *shape: int) -> Tensor:
        """New numbers (B, ...)."""
        self.calls += 1
        start = mixed(mixed(self.texts + self.key) + self.calls * GOLDEN)
        columns = torch.arange(1, 1 + int(np.prod(shape)), device=self.texts.device)
        found = mixed(start[:, None] + columns * GOLDEN)
        return (((found >> (64 - BITS)) & ((1 << BITS) - 1)) / (1 << BITS)).view(len(found), *shape)
