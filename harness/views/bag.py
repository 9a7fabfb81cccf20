"""Texts as bags: words with hashed n-grams, or counted letter trigrams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from harness.ragged import Columns, Ragged, take
from harness.views.base import Text, View, words_of
from harness.views.words import UNKNOWN, Vocabulary, VocabularyView

END = "</s>"
"""Closes every text and counts as a word, as in fastText."""

FNV_OFFSET, FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3


def fnv1a(word: str) -> int:
    """64-bit FNV-1a hash of the word's UTF-8 bytes: the same in every process, unlike ``hash``."""
    value = FNV_OFFSET
    for byte in word.encode("utf-8", "surrogatepass"):
        value = (value ^ byte) * FNV_PRIME & 0xFFFFFFFFFFFFFFFF
    return value


class BagBatch(NamedTuple):
    """Inputs of B texts for ``nn.EmbeddingBag``: ``ids`` (N,), ``offsets`` (B,) where each text
    begins, ``lengths`` (B,) its inputs."""

    ids: Tensor
    offsets: Tensor
    lengths: Tensor


@dataclass
class Bag(VocabularyView):
    """Words and their n-grams of 2 to ``ngrams`` as rows of one table: the vocabulary, then
    ``buckets`` that n-grams are hashed into.

    A word seen less than ``min_count`` times in training is no input itself, but its n-grams are,
    as in fastText.
    """

    ngrams: int = 2
    buckets: int = 2_000_000
    min_count: int = 1
    lower: bool = True
    may_be_zero: ClassVar[tuple[str, ...]] = ("buckets",)

    def __post_init__(self) -> None:
        if self.ngrams < 1 or (self.ngrams > 1 and self.buckets < 1):
            raise ValueError(
                f"ngrams={self.ngrams}, buckets={self.buckets}: n-grams start at 1, and from 2 on need buckets"
            )

    @property
    def width(self) -> int:
        return super().width + (self.buckets if self.ngrams > 1 else 0)

    def read(self, text: Text) -> list[str]:
        """The words of a text as this view sees them, closed by the end of text."""
        words = words_of(text)
        return [*(word.lower() for word in words), END] if self.lower else [*words, END]

    def fit(self, texts: Sequence[Text]) -> None:
        self.vocabulary = Vocabulary.of((word for text in texts for word in self.read(text)), self.min_count)

    def encode(self, texts: Sequence[Text]) -> Columns:
        read = [self.read(text) for text in texts]
        flat = [word for words in read for word in words]
        text = np.repeat(np.arange(len(read)), [len(words) for words in read])
        ids = np.array(self.vocabulary.ids(flat), dtype=np.int32)
        known = ids != UNKNOWN
        found, owners = [ids[known]], [text[known]]
        for ngrams, starts in self._ngrams(flat, text):
            found.append(ngrams)
            owners.append(text[starts])
        owner = np.concatenate(owners)
        offsets = np.cumsum([0, *np.bincount(owner, minlength=len(read))])
        return {"ids": Ragged(np.concatenate(found)[np.argsort(owner, kind="stable")], offsets)}

    def _ngrams(self, words: list[str], text: np.ndarray):
        """For each n from 2: table rows of the n-grams that lie within one text, and the positions
        of their first words."""
        hashes = {word: fnv1a(word) for word in set(words)} if self.ngrams > 1 else {}
        word_hash = np.array([hashes[word] for word in words] if hashes else [], dtype=np.uint64)
        prime = np.uint64(FNV_PRIME)
        rolling = (np.uint64(FNV_OFFSET) ^ word_hash) * prime
        for n in range(2, self.ngrams + 1):
            rolling = (rolling[:-1] ^ word_hash[n - 1 :]) * prime
            starts = np.flatnonzero(text[: len(rolling)] == text[n - 1 :])
            yield (rolling[starts] % np.uint64(self.buckets)).astype(np.int32) + len(self.vocabulary), starts

    def collate(self, columns: Columns, rows: np.ndarray) -> BagBatch:
        ids = take(columns["ids"], rows)
        return BagBatch(
            torch.from_numpy(ids.values).long(), torch.from_numpy(ids.offsets[:-1]), torch.from_numpy(ids.lengths)
        )


def letter_trigrams(word: str) -> list[str]:
    """Trigrams of ``#word#`` in lower case: ``#ca``, ``cat`` and ``at#`` for Cat."""
    marked = f"#{word.lower()}#"
    return [marked[i : i + 3] for i in range(len(marked) - 2)]


class TrigramBatch(NamedTuple):
    """Distinct letter trigrams of B texts for ``nn.EmbeddingBag``: ``ids``, counts ``weights``
    (N,), ``offsets``, ``lengths`` (B,)."""

    ids: Tensor
    offsets: Tensor
    weights: Tensor
    lengths: Tensor


@dataclass
class LetterTrigrams(View):
    """Count of each letter trigram in the words, written ``#word#`` in lower case (Huang et al.
    2013); trigrams that training does not have are left out."""

    @property
    def width(self) -> int:
        return len(self.trigrams)

    def fit(self, texts: Sequence[Text]) -> None:
        words = {word for text in texts for word in words_of(text)}
        self._learn(sorted({trigram for word in words for trigram in letter_trigrams(word)}))

    def _learn(self, trigrams: list[str]) -> None:
        self.trigrams = trigrams
        self._ids = {trigram: id for id, trigram in enumerate(trigrams)}

    def encode(self, texts: Sequence[Text]) -> Columns:
        read = [words_of(text) for text in texts]
        numbers: dict[str, int] = {}
        flat = np.array([numbers.setdefault(word, len(numbers)) for words in read for word in words], dtype=np.int64)
        spelt = Ragged.of(
            ([self._ids[t] for t in letter_trigrams(word) if t in self._ids] for word in numbers), np.int64
        )
        found = take(spelt, flat)
        owner = np.repeat(np.repeat(np.arange(len(read)), [len(words) for words in read]), found.lengths)
        distinct, counts = np.unique(owner * self.width + found.values, return_counts=True)
        offsets = np.cumsum([0, *np.bincount(distinct // self.width, minlength=len(read))])
        return {
            "ids": Ragged((distinct % self.width).astype(np.int32), offsets),
            "weights": Ragged(counts.astype(np.float32), offsets),
        }

    def lengths(self, columns: Columns) -> np.ndarray:
        return columns["ids"].lengths

    def collate(self, columns: Columns, rows: np.ndarray) -> TrigramBatch:
        ids, weights = take(columns["ids"], rows), take(columns["weights"], rows)
        tensors = (ids.values.astype(np.int64), ids.offsets[:-1], weights.values, ids.lengths)
        return TrigramBatch(*map(torch.from_numpy, tensors))

    def state(self) -> dict[str, Any]:
        return {"trigrams": self.trigrams}

    def restore(self, state: dict[str, Any]) -> None:
        self._learn(state["trigrams"])
