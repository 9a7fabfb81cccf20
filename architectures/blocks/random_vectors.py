"""Random vectors of words, for systems whose parent would give better ones."""

from __future__ import annotations

from zlib import crc32

import numpy as np


def random_vector(word: str, dims: int, seed: int = 0) -> np.ndarray:
    """A vector (dims,) of standard normal numbers, always the same for a word and a seed."""
    return np.random.default_rng([seed, crc32(word.encode("utf-8", "surrogatepass"))]).normal(size=dims)
