"""GloVe: word vectors whose products are the logarithms of counts of neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from harness.problems.text import VectorTrainer
from harness.ragged import Ragged, take
from harness.registry import register
from harness.views.words import UNKNOWN, Vocabulary

TEXTS_AT_ONCE = 5000
"""Texts whose neighbours are counted together."""


def neighbour_counts(texts: Ragged, words: int, window: int) -> sparse.csr_array:
    """Sum of 1/distance over all places where two words stand at most ``window`` places apart in a
    text, unknown words left out before: symmetric (words, words)."""
    total = sparse.csr_array((words, words), dtype=np.float32)
    for begin in range(0, len(texts), TEXTS_AT_ONCE):
        part = take(texts, np.arange(begin, min(begin + TEXTS_AT_ONCE, len(texts))))
        known = part.values != UNKNOWN
        ids, text_of = part.values[known], np.repeat(np.arange(len(part)), part.lengths)[known]
        for distance in range(1, window + 1):
            same = text_of[:-distance] == text_of[distance:]
            pair = ids[:-distance][same], ids[distance:][same]
            weights = np.full(len(pair[0]), 1 / distance, dtype=np.float32)
            total = total + sparse.csr_array((weights, pair), shape=total.shape)
    return sparse.csr_array(total + total.T)


class Side:
    """Vectors and biases of one side, (V, D + 1), under AdaGrad: each number moves by the rate over
    the root of 1 and the squares of its gradients so far."""

    def __init__(self, words: int, dims: int, rng: np.random.Generator):
        self.values = torch.from_numpy(((rng.random((words, dims + 1)) - 0.5) / (dims + 1)).astype(np.float32))
        self.squares = torch.ones_like(self.values)

    def move(self, rows: Tensor, gradients: Tensor, rate: float) -> None:
        """One step; gradients (N, D + 1) are those of single cells, from the same values."""
        self.values.index_add_(0, rows, -rate * gradients / self.squares[rows].sqrt())
        self.squares.index_add_(0, rows, gradients**2)


@register(
    "glove",
    name="GloVe",
    kind="fit",
    paper="Pennington et al. 2014",
    source="R25.5.1 M-A.1[28]",
    year=2014,
    tiny={"dims": 24, "epochs": 4, "most": 10.0},
    deviations=(
        "Vectors of 100 numbers and 50 passes, one of the paper's sizes; its largest tables have 300 and 100 passes.",
        "The vocabulary is that of all systems on plain text, words seen five times; the paper's are 400,000 words.",
        "The gradients of 1,024 cells (fewer where words are few) are summed to one step; the authors' program makes a"
        " step for each cell.",
    ),
)
class GloVe(VectorTrainer):
    """J = sum over the cells X_ij > 0 of f(X_ij) (w_i v_j + b_i + c_j - log X_ij)^2 is made small
    by AdaGrad, with f(x) = min(1, (x / ``most``)^0.75).

    X are the :func:`neighbour_counts`; the cells come in an order of chance in each of the
    ``epochs``. A word's vector is the sum w + v of both sides. Slow for a text system, because each
    of its many passes takes every pair of neighbours.
    """

    def __init__(
        self,
        seed: int = 0,
        dims: int = 100,
        window: int = 10,
        most: float = 100.0,
        rate: float = 0.05,
        epochs: int = 50,
        batch_size: int = 1024,
    ):
        super().__init__(seed)
        self.dims, self.window, self.most = dims, window, most
        self.rate, self.epochs, self.batch_size = rate, epochs, batch_size

    @classmethod
    def memory_needed(cls, size: int, hyperparameters: dict[str, Any]) -> float:
        return 40.0 * size

    def train(self, texts: Ragged, vocabulary: Vocabulary) -> np.ndarray:
        rng = np.random.default_rng(self.seed)
        words, others = (Side(len(vocabulary), self.dims, rng) for _ in range(2))
        counts = neighbour_counts(texts, len(vocabulary), self.window).tocoo()
        size = max(1, min(self.batch_size, len(vocabulary)))
        for _ in range(self.epochs):
            order = rng.permutation(counts.nnz)
            for begin in range(0, len(order), size):
                cells = order[begin : begin + size]
                row, column = (torch.from_numpy(side[cells].astype(np.int64)) for side in counts.coords)
                self._step(words, others, row, column, torch.from_numpy(counts.data[cells]))
        return (words.values + others.values)[:, :-1].numpy()

    def _step(self, words: Side, others: Side, row: Tensor, column: Tensor, counts: Tensor) -> None:
        """A step on half of J over some cells, as in the authors' program."""
        w, v = words.values[row], others.values[column]
        distance = (w[:, :-1] * v[:, :-1]).sum(1) + w[:, -1] + v[:, -1] - counts.log()
        pull = ((counts / self.most).clamp(max=1) ** 0.75 * distance)[:, None]
        gradients = [torch.cat([pull * side[:, :-1], pull], dim=1) for side in (v, w)]
        words.move(row, gradients[0], self.rate)
        others.move(column, gradients[1], self.rate)
