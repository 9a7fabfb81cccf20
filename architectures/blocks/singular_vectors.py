"""The directions of a sparse matrix in which it is largest."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds

ROOM = 3
"""Rows and columns for each direction that is sought, with which PROPACK gets far enough."""


def largest_directions(matrix: sparse.csr_array, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The ``count`` largest singular values of a matrix (N, V), falling, and their right singular
    vectors (``count``, V), the largest entry of each of which is positive.

    By PROPACK, since ARPACK, which scikit-learn has, gives up on some matrices from some starts.
    The seed decides where it starts, and so what rounding is left. A matrix without :data:`ROOM` is
    decomposed as a whole.
    """
    if min(matrix.shape) < ROOM * count:
        _, values, vectors = np.linalg.svd(matrix.toarray(), full_matrices=False)
    else:
        start = np.random.default_rng(seed).uniform(-1, 1, matrix.shape[0])
        _, values, vectors = svds(matrix, count, v0=start, solver="propack", return_singular_vectors="vh")
    order = np.argsort(-values)[:count]
    values, vectors = values[order], vectors[order]
    largest = np.abs(vectors).argmax(1)
    return values, vectors * np.sign(vectors[np.arange(count), largest])[:, None]
