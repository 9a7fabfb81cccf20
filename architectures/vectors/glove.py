"""GloVe: word vectors whose products are the logarithms of counts of neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from architectures.blocks.hogwild import CompiledTrainer, Rates, compiled, learn_passes
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


@compiled
def move(values, squares, row, column, gradient, rate):
    """AdaGrad's step of one number: its gradient times the rate, over the root of 1 and the squares
    of such products before, which ``squares`` hold."""
    step = np.float32(rate) * gradient
    values[row, column] -= step / np.sqrt(squares[row, column])
    squares[row, column] += step * step


@compiled
def learn_cells(order, rows, columns, counts, most, rate, words, others, squares, other_squares):
    """A step on half of J, the sum that :class:`GloVe` makes small, for each of some cells.

    Cell X_ij has its ``rows`` i, ``columns`` j and ``counts``. ``words`` w and ``others`` v (V, D +
    1) end in the biases; ``squares`` are those of :func:`move`.
    """
    bias = words.shape[1] - 1
    for cell in order:
        i, j, count = rows[cell], columns[cell], counts[cell]
        distance = words[i, bias] + others[j, bias] - np.log(count)
        for k in range(bias):
            distance += words[i, k] * others[j, k]
        pull = min(np.float32(1), np.float32(count / most) ** np.float32(0.75)) * distance
        for k in range(bias):
            w, v = words[i, k], others[j, k]
            move(words, squares, i, k, pull * v, rate)
            move(others, other_squares, j, k, pull * w, rate)
        move(words, squares, i, bias, pull, rate)
        move(others, other_squares, j, bias, pull, rate)


@register(
    "glove",
    name="GloVe",
    kind="fit",
    paper="Pennington et al. 2014",
    source="R25.5.1 M-A.1[28]",
    year=2014,
    version=3,
    tiny={"dims": 24, "epochs": 4, "most": 10.0},
    deviations=(
        "Vectors of 100 numbers and 50 passes, one of the paper's sizes; its largest tables have 300 and 100 passes.",
        "The vocabulary is that of all systems on plain text, words seen five times; the paper's are 400,000 words.",
        "The cells come in another order in each pass; the authors' program shuffles them once.",
    ),
)
class GloVe(CompiledTrainer):
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
        threads: int = 1,
    ):
        super().__init__(seed, threads)
        self.dims, self.window, self.most = dims, window, most
        self.rate, self.epochs = rate, epochs

    @classmethod
    def memory_needed(cls, size: int, hyperparameters: dict[str, Any]) -> float:
        return 40.0 * size

    def train(self, texts: Ragged, vocabulary: Vocabulary) -> np.ndarray:
        rng, shape = np.random.default_rng(self.seed), (len(vocabulary), self.dims + 1)
        words, others = (((rng.random(shape) - 0.5) / shape[1]).astype(np.float32) for _ in range(2))
        cells = neighbour_counts(texts, len(vocabulary), self.window).tocoo()
        given = *(side.astype(np.int32) for side in cells.coords), cells.data, self.most
        tables = words, others, np.ones_like(words), np.ones_like(others)

        def learn(order: np.ndarray, _: Rates, __: np.ndarray) -> None:
            learn_cells(order, *given, self.rate, *tables)

        learn_passes(learn, cells.nnz, self.epochs, self.rate, self.threads, rng)
        return (words + others)[:, :-1]
