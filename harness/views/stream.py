"""Texts as streams of words, each of which is foretold from those before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from harness.ragged import Columns, Ragged, mask_of
from harness.views.base import Text, words_of
from harness.views.words import PAD, Vocabulary, VocabularyView, WordBatch

UNKNOWN = "<unk>"
"""Word that stands for every word outside of a vocabulary. Some corpora have it in their texts."""


class StreamBatch(NamedTuple):
    """Stretches of B texts, T words at most: the word before each (B, T) as ``ids``, with its
    vector in ``vectors`` (B, T, D), and the word itself as ``next``.

    ``ids`` are rows of a word table: 0, whose vector is zero, before the first word of a text, 1
    the unknown word. ``next`` numbers the words that can come from 0, the unknown one. ``mask``
    (B, T) is true at words, ``lengths`` (B,) counts them, and ``begins`` (B,) is true where a
    stretch is the first of its text.
    """

    ids: Tensor
    next: Tensor
    mask: Tensor
    lengths: Tensor
    begins: Tensor
    vectors: Tensor = torch.empty(0)
    static: Tensor = torch.empty(0)

    def before(self, texts: Tensor | slice, start: int, stop: int) -> WordBatch:
        """The words before those from ``start`` to ``stop``, of some of the texts: what a network
        may see of them."""
        mask = self.mask[texts, start:stop]
        vectors, static = (
            field[texts, start:stop] if field.dim() == 3 else field for field in (self.vectors, self.static)
        )
        return WordBatch(self.ids[texts, start:stop], mask, mask.sum(1), vectors, static)


@dataclass
class Stream(VocabularyView):
    """All words of a text as they are written, and the word before each. The vocabulary is that of
    training; a word outside of it is the unknown one, as whom :data:`UNKNOWN` is read too."""

    embeds: ClassVar[bool] = True

    def fit(self, texts: Sequence[Text]) -> None:
        self.vocabulary = Vocabulary.of(
            (word for text in texts for word in words_of(text) if word != UNKNOWN), min_count=1
        )

    def encode(self, texts: Sequence[Text]) -> Columns:
        words = Ragged.of(self.vocabulary.ids(words_of(text)) for text in texts)
        before = Ragged.of([PAD, *words[row][:-1]] if len(words[row]) else [] for row in range(len(words)))
        return {"ids": before, "next": Ragged(words.values - 1, words.offsets), "begins": np.ones(len(texts), bool)}

    def collate(self, columns: Columns, rows: np.ndarray) -> StreamBatch:
        ids, lengths = columns["ids"].pad(rows, PAD)
        following, _ = columns["next"].pad(rows)
        return StreamBatch(
            torch.from_numpy(ids).long(),
            torch.from_numpy(following).long(),
            mask_of(lengths, ids.shape[1]),
            torch.from_numpy(lengths),
            torch.from_numpy(np.asarray(columns["begins"])[rows]),
        )

    @staticmethod
    def cut(columns: Columns, longest: int) -> Columns:
        """The same words in stretches of at most so many, in their order. A text's last stretch may
        be shorter; one without words has none."""
        offsets: Any = columns["ids"].offsets
        lengths = np.diff(offsets)
        counts = -(-lengths // longest)
        numbers = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        starts = np.repeat(offsets[:-1], counts) + numbers * longest
        begins = np.repeat(np.asarray(columns["begins"]), counts) & (numbers == 0)
        bounds = np.append(starts, offsets[-1])
        return {name: Ragged(columns[name].values, bounds) for name in ("ids", "next")} | {"begins": begins}
