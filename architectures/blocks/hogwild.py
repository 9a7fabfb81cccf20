"""Hogwild (Recht et al. 2011): steps of single examples, in loops that numba compiles, on tables to
which several threads write without waiting for each other."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise, repeat
from typing import NamedTuple

import numba
import numpy as np

from harness.kinds import Estimator
from harness.problems.text import VectorTrainer
from harness.ragged import Ragged
from harness.views.words import Vocabulary

compiled = numba.njit(nogil=True, fastmath={"contract", "reassoc"})
"""Decorator of such a loop. It is compiled in each process at its first call, for other threads to
run beside it, and its sums may be taken in any one order, so that they are of vectors. Nothing is
written to disk."""


class Rows(NamedTuple):
    """A :class:`Ragged` as a compiled loop reads it: row i is ``values[offsets[i]:offsets[i + 1]]``
    of 32-bit integers."""

    values: np.ndarray
    offsets: np.ndarray

    @classmethod
    def of(cls, ragged: Ragged) -> Rows:
        return cls(np.ascontiguousarray(ragged.values, np.int32), np.ascontiguousarray(ragged.offsets, np.int64))


class Rates(NamedTuple):
    """Learning rates of the first example of a part, and of the one that would follow its last."""

    first: float
    last: float


@compiled
def mean_of_rows(sources, bags, table, mean):
    """Puts the mean of the rows of ``table`` (rows, D) in the bags of the ``sources`` into ``mean``
    (D,); returns the share of each row in it."""
    mean[:] = 0
    count = 0
    for source in sources:
        for place in range(bags.offsets[source], bags.offsets[source + 1]):
            row = bags.values[place]
            for i in range(len(mean)):
                mean[i] += table[row, i]
            count += 1
    scale = np.float32(1 / max(1, count))
    for i in range(len(mean)):
        mean[i] *= scale
    return scale


@compiled
def move_rows(sources, bags, table, change):
    """Adds a ``change`` (D,) to each of those rows."""
    for source in sources:
        for place in range(bags.offsets[source], bags.offsets[source + 1]):
            row = bags.values[place]
            for i in range(len(change)):
                table[row, i] += change[i]


@compiled
def rate_at(rates, number, count):
    """The rate of one of so many examples, which falls linearly."""
    return np.float32(rates.first + (rates.last - rates.first) * number / count)


@compiled
def fraction(state):
    """A random number from 0 to below 1 by the generator splitmix64 (Steele et al. 2014), whose
    ``state`` (1,) is of 64 bits."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    bits = state[0]
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((bits ^ (bits >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53


def states(count: int, rng: np.random.Generator) -> np.ndarray:
    """States (count, 1) in which so many generators of :func:`fraction` begin."""
    return rng.integers(2**64, size=(count, 1), dtype=np.uint64)


def learn_passes(
    learn: Callable[[np.ndarray, Rates, np.ndarray], object],
    examples: int,
    epochs: int,
    rate: float,
    threads: int,
    rng: np.random.Generator,
) -> None:
    """Give ``learn`` the numbers of all examples, in an order of chance, ``epochs`` times.

    Each of the ``threads`` takes a part of them, with the :class:`Rates` of this pass, from
    ``rate`` in the first to zero in the last, and with the state of a generator of its own. On one
    thread equal seeds give equal bits. On more of them a step that another one writes over is lost:
    seldom, where an example touches few of many rows.
    """
    if threads < 1:
        raise ValueError(f"threads={threads}: at least one has to learn")
    with ThreadPoolExecutor(threads) as pool:
        for both in pairwise(np.linspace(rate, 0, epochs + 1).tolist()):
            parts = np.array_split(rng.permutation(examples), threads)
            list(pool.map(learn, parts, repeat(Rates(*both)), states(threads, rng)))


class Hogwild(Estimator):
    """A system that learns on so many ``threads``; with several, equal seeds give other bits
    (:func:`learn_passes`)."""

    def __init__(self, seed: int, threads: int):
        super().__init__(seed)
        self.threads, self.deterministic = threads, threads == 1


class CompiledTrainer(Hogwild, VectorTrainer):
    """Word vectors that compiled loops learn."""

    def prepare(self) -> None:
        self.train(Ragged.of([[2, 2]]), Vocabulary.of(["word", "word"], 1))
