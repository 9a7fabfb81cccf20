"""Texts as words, and each word as its letter trigrams: what a convolution over windows of words
reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from harness.ragged import Columns, Ragged, mask_of, take
from harness.views.bag import LetterTrigrams, letter_trigrams
from harness.views.base import Text, words_of


class WordTrigramBatch(NamedTuple):
    """Letter trigrams of the W words of B texts, one word after another, for ``nn.EmbeddingBag`` in
    mode ``sum``.

    ``ids`` (N,), each as often as it occurs; ``offsets`` (W,) where each word begins; ``mask`` (B,
    T) true at words, of which there are W; ``lengths`` (B,) in words.
    """

    ids: Tensor
    offsets: Tensor
    mask: Tensor
    lengths: Tensor


@dataclass
class WordTrigrams(LetterTrigrams):
    """Letter trigrams as in :class:`LetterTrigrams`, word by word and in order; texts are cut after
    ``max_length`` words.

    A word without known trigrams keeps its place; an empty text is one such word.
    """

    max_length: int = 400

    def encode(self, texts: Sequence[Text]) -> Columns:
        read = [words_of(text)[: self.max_length] or [""] for text in texts]
        numbers: dict[str, int] = {}
        words = Ragged.of(([numbers.setdefault(word, len(numbers)) for word in text] for text in read), np.int64)
        spelt = take(
            Ragged.of([self._ids[t] for t in letter_trigrams(word) if t in self._ids] for word in numbers), words.values
        )
        return {
            "ids": Ragged(spelt.values, spelt.offsets[words.offsets]),
            "sizes": Ragged(spelt.lengths, words.offsets),
        }

    def lengths(self, columns: Columns) -> np.ndarray:
        return columns["sizes"].lengths

    def collate(self, columns: Columns, rows: np.ndarray) -> WordTrigramBatch:  # type: ignore[override]
        ids, sizes = take(columns["ids"], rows), take(columns["sizes"], rows)
        offsets = np.cumsum(sizes.values) - sizes.values
        lengths = sizes.lengths
        tensors = map(torch.from_numpy, (ids.values.astype(np.int64), offsets, lengths))
        return WordTrigramBatch(
            next(tensors), next(tensors), mask_of(lengths, int(lengths.max(initial=1))), next(tensors)
        )
