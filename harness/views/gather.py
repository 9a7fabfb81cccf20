"""Rows of ragged arrays, joined without padding or padded two levels deep."""

from __future__ import annotations

import numpy as np

from harness.batching import Ragged


def take(ragged: Ragged, rows: np.ndarray) -> Ragged:
    """The given rows, one behind the other."""
    starts, lengths = ragged.offsets[rows], ragged.offsets[np.asarray(rows) + 1] - ragged.offsets[rows]
    offsets = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    index = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
    return Ragged(ragged.values[index], offsets)


def pad_nested(units: Ragged, sizes: Ragged, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of groups of units (characters of words, words of sentences) as one array.

    Row i of ``units`` holds all its groups' units, row i of ``sizes`` how many each group has.
    Returns the units (rows, most groups, largest group) with 0 behind the short ones, a mask of
    that shape that is true at units, and the groups of each row (rows,).
    """
    inner, groups = sizes.pad(rows)
    starts = units.offsets[rows][:, None] + inner.cumsum(axis=1) - inner
    columns = np.arange(max(int(inner.max(initial=0)), 1))
    inside = columns < inner[:, :, None]
    padded = np.zeros(inside.shape, dtype=units.values.dtype)
    padded[inside] = units.values[(starts[:, :, None] + columns)[inside]]
    return padded, inside, groups
