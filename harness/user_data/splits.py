"""Splits held out by a seed: whole groups of rows, the same ones on every machine."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

import numpy as np

from harness.task import Split


def hashes(keys: Iterable[str], seed: int = 0) -> np.ndarray:
    """A number of 64 bits for each key and seed: (keys,)."""
    start = f"{seed} "
    digests = (hashlib.sha256((start + key).encode()).digest() for key in keys)
    return np.fromiter((int.from_bytes(digest[:8], "big") for digest in digests), dtype=np.uint64)


def carved(hashed: np.ndarray, shares: Mapping[Split, float]) -> np.ndarray:
    """The split of each row (rows,): 0 for train, and the place from 1 among ``shares`` of the one
    that it is held out for.

    Rows whose keys have one hash stay together. Keys go to a split in the order of their hashes,
    while at most its share of the rows is there; one that is too large for what is left goes
    elsewhere. The order of the rows plays no part.
    """
    _, of_row, sizes = np.unique(hashed, return_inverse=True, return_counts=True)
    place = np.zeros(len(sizes), dtype=np.int8)
    for number, share in enumerate(shares.values(), 1):
        room = round(share * len(hashed))
        for key in np.flatnonzero(place == 0):
            if room <= 0:
                break
            if sizes[key] <= room:
                place[key] = number
                room -= sizes[key]
    return place[of_row]
