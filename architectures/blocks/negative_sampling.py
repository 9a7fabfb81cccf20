"""Negative sampling (Mikolov et al. 2013b): word vectors learnt by telling words that stood in a
place from drawn ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from harness.problems.text import VectorTrainer
from harness.ragged import Ragged, take
from harness.views.words import Vocabulary

TEXTS_AT_ONCE = 1000
"""Texts whose windows are made together: enough for speed, few enough for memory."""
LOWEST = 1e-4
"""Share of the first learning rate below which it does not fall."""


SPREAD = 10
"""Entries of the vocabulary for each example of a step: in a step that reads the same few vectors
again and again, the sum of their gradients would throw them too far."""


class Places(NamedTuple):
    """Pairs of places in a stream of words, ``centres`` (P,), rising, and ``contexts`` (P,)."""

    centres: np.ndarray
    contexts: np.ndarray


def window_pairs(text_of: np.ndarray, window: int, rng: np.random.Generator) -> Places:
    """Each place with those around it, up to a distance drawn from 1 to ``window`` for each centre,
    in the same text; ``text_of`` (n,) are the numbers of the texts."""
    places, distances = np.arange(len(text_of)), rng.integers(1, window + 1, len(text_of))
    centres, contexts = [], []
    for distance in range(1, window + 1):
        for step in (-distance, distance):
            beside = places + step
            inside = (beside >= 0) & (beside < len(places)) & (distances >= distance)
            inside[inside] = text_of[beside[inside]] == text_of[inside]
            centres.append(places[inside])
            contexts.append(beside[inside])
    joined = np.concatenate(centres)
    order = np.argsort(joined, kind="stable")
    return Places(joined[order], np.concatenate(contexts)[order])


class Examples(NamedTuple):
    """Bags of rows of the first table (``rows`` (N,), ``starts`` (B,) of each bag), and the word
    that each foretells (B,)."""

    rows: np.ndarray
    starts: np.ndarray
    words: np.ndarray

    def batches(self, size: int) -> Iterator[Examples]:
        """So many examples at a time, in their order."""
        ends = np.append(self.starts, len(self.rows))
        for begin in range(0, len(self.words), size):
            end = min(begin + size, len(self.words))
            rows = self.rows[ends[begin] : ends[end]]
            yield Examples(rows, self.starts[begin:end] - ends[begin], self.words[begin:end])


class NegativeSampling:
    """Two tables of vectors, ``inputs`` (rows, D) and ``outputs`` (V, D), that learn from examples.

    The mean h of a bag's rows foretells its word w: log s(u_w h) + sum log s(-u_n h) rises, over
    ``negatives`` words n drawn in proportion to count^0.75. A drawn word that is w itself is left
    out.
    """

    def __init__(self, inputs: Tensor, outputs: Tensor, counts: np.ndarray, negatives: int, rng: np.random.Generator):
        self.inputs, self.outputs, self.negatives, self.rng = inputs, outputs, negatives, rng
        shares = counts.astype(float) ** 0.75
        self.cumulative = shares.cumsum() / shares.sum()

    def draw(self, count: int, rng: np.random.Generator | None = None) -> np.ndarray:
        """Negatives for so many examples (count, negatives); from ``rng``, if one is given."""
        return self.cumulative.searchsorted((rng or self.rng).random((count, self.negatives)), side="right")

    def learn(self, examples: Examples, rate: float) -> None:
        """One step of gradient ascent on the sum over the examples, each from the same tables.

        Each row of a bag moves by the whole gradient of the mean, not by its share of it, as in the
        authors' program.
        """
        rows, starts = torch.from_numpy(examples.rows), torch.from_numpy(examples.starts)
        hidden = F.embedding_bag(rows, self.inputs, starts, mode="mean")
        change = self.told(hidden, np.column_stack([examples.words, self.draw(len(examples.words))]), rate)
        sizes = torch.diff(starts, append=torch.tensor([len(rows)]))
        self.inputs.index_add_(0, rows, change.repeat_interleave(sizes, dim=0))

    def told(self, hidden: Tensor, words: np.ndarray, rate: float, frozen: bool = False) -> Tensor:
        """Changes (B, D) of the vectors ``hidden`` that foretell the first of ``words`` (B, 1 +
        negatives) by a step at this rate; ``outputs`` make theirs, unless they are frozen."""
        chosen = torch.from_numpy(words)
        outputs = self.outputs[chosen]
        error = -torch.sigmoid((outputs @ hidden[:, :, None]).squeeze(2))
        error[:, 0] += 1
        error[:, 1:] *= chosen[:, 1:] != chosen[:, :1]
        error *= rate
        change = (error[:, None] @ outputs).squeeze(1)
        if not frozen:
            self.outputs.index_add_(0, chosen.flatten(), (error[:, :, None] * hidden[:, None]).flatten(0, 1))
        return change


class WindowTrainer(VectorTrainer):
    """Word vectors learnt from windows over a text by :class:`NegativeSampling`.

    A word of the text is kept with the probability sqrt(``threshold`` / its share), at most 1, anew
    in each of the ``epochs`` passes; rare words are left out before. The texts come in an order of
    chance. ``window`` words at most on each side of a centre are read (:func:`window_pairs`); the
    rate falls linearly from ``rate`` to zero, by the words read. A step is of ``batch_size``
    examples, or of fewer where the vocabulary is small (:data:`SPREAD`). Subclasses make
    :meth:`examples` of a window.
    """

    def __init__(
        self,
        seed: int,
        dims: int,
        window: int,
        negatives: int,
        threshold: float,
        rate: float,
        epochs: int,
        batch_size: int,
    ):
        super().__init__(seed)
        self.dims, self.window, self.negatives, self.threshold = dims, window, negatives, threshold
        self.rate, self.epochs, self.batch_size = rate, epochs, batch_size

    def examples(self, words: np.ndarray, places: Places) -> Examples:
        """Examples of the numbers of the words (n,) of some texts, and pairs of places in them."""
        raise NotImplementedError

    def rows(self, vocabulary: Vocabulary) -> int:
        """Rows of the table of inputs."""
        return len(vocabulary)

    def train(self, texts: Ragged, vocabulary: Vocabulary) -> np.ndarray:
        rng = np.random.default_rng(self.seed)
        counts = np.array(vocabulary.row_counts())
        inputs = ((rng.random((self.rows(vocabulary), self.dims)) - 0.5) / self.dims).astype(np.float32)
        outputs = torch.zeros(len(vocabulary), self.dims)
        tables = NegativeSampling(torch.from_numpy(inputs), outputs, counts, self.negatives, rng)
        kept = kept_shares(counts, self.threshold)
        size = max(1, min(self.batch_size, int(len(vocabulary) / SPREAD)))
        for done, words, places in self._windows(texts, kept, rng):
            for batch in self.examples(words, places).batches(size):
                tables.learn(batch, self.rate * max(1 - done, LOWEST))
        return inputs

    def _windows(
        self, texts: Ragged, kept: np.ndarray, rng: np.random.Generator
    ) -> Iterator[tuple[float, np.ndarray, Places]]:
        """The share of the words that are read, and kept words with their pairs of places."""
        read = 0
        for _ in range(self.epochs):
            order = rng.permutation(len(texts))
            for begin in range(0, len(order), TEXTS_AT_ONCE):
                part = take(texts, order[begin : begin + TEXTS_AT_ONCE])
                chosen = rng.random(len(part.values)) < kept[part.values]
                text_of = np.repeat(np.arange(len(part)), part.lengths)[chosen]
                done = read / (self.epochs * len(texts.values))
                yield done, part.values[chosen].astype(np.int64), window_pairs(text_of, self.window, rng)
                read += len(part.values)


def kept_shares(counts: np.ndarray, threshold: float) -> np.ndarray:
    """Probability with which each word is kept (V,); 0 for one without a count, such as the unknown
    word."""
    shares = counts / counts.sum()
    return np.sqrt(threshold / np.where(counts > 0, shares, np.inf)).clip(max=1)
