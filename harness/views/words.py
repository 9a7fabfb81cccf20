"""Texts as sequences of words; the batch holds their vectors once the model has looked them up."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple
from zlib import crc32

import numpy as np
import torch
from torch import Tensor

from harness.ragged import Columns, Ragged, mask_of
from harness.views.base import WORD, Text, View, words_of
from harness.views.pieces import Pieces

PAD, UNKNOWN = 0, 1
DIGIT = re.compile(r"\d")


class Vocabulary:
    """Words by falling frequency in the training texts, ``counts`` beside them; 0 is padding and 1
    every other word.

    >>> vocabulary = Vocabulary.of("the cat saw the dog and the cat".split(), min_count=2)
    >>> vocabulary.words, vocabulary.counts
    (['the', 'cat'], [3, 2])
    >>> vocabulary.ids(["the", "cat", "sleeps"])
    [2, 3, 1]
    """

    def __init__(self, words: Sequence[str], counts: Sequence[int]):
        self.words = list(words)
        self.counts = list(counts)
        self._ids = {word: id for id, word in enumerate(self.words, start=2)}

    @classmethod
    def of(cls, words: Iterable[str], min_count: int) -> Vocabulary:
        """Words seen at least ``min_count`` times; rarer ones train the unknown word's vector."""
        counted = sorted(Counter(words).items(), key=lambda item: (-item[1], item[0]))
        kept = [(word, count) for word, count in counted if count >= min_count]
        return cls([w for w, _ in kept], [c for _, c in kept])

    def __len__(self) -> int:
        return len(self.words) + 2

    def ids(self, words: Iterable[str]) -> list[int]:
        """Number of each word."""
        get = self._ids.get
        return [get(word, UNKNOWN) for word in words]

    def row_counts(self, absent: int = 0) -> list[int]:
        """Count of each row of a word table; ``absent`` for padding and the unknown word, which
        have none."""
        return [absent, absent, *self.counts]


class VocabularyView(View):
    """A view whose :meth:`fit` learns a ``vocabulary`` and nothing else, and whose column ``ids``
    has one number for each unit of a text.

    One that ``divides`` reads each word as its ``pieces``, where it is given some before it is
    fitted: what is said of words then holds for pieces.
    """

    vocabulary: Vocabulary
    divides: ClassVar[bool] = False
    pieces: Pieces | None = None

    @property
    def width(self) -> int:
        return len(self.vocabulary)

    def lengths(self, columns: Columns) -> np.ndarray:
        return columns["ids"].lengths

    def state(self) -> dict[str, Any]:
        learnt = {"words": self.vocabulary.words, "counts": self.vocabulary.counts}
        return learnt if self.pieces is None else learnt | {"pieces": self.pieces.text}

    def restore(self, state: dict[str, Any]) -> None:
        self.vocabulary = Vocabulary(state["words"], state["counts"])
        if "pieces" in state:
            self.pieces = Pieces(state["pieces"])

    def divided(self, words: list[str]) -> list[str]:
        """The words, or the pieces of them where there are some."""
        return words if self.pieces is None else self.pieces.split(words)


class WordBatch(NamedTuple):
    """Words of B texts, T at most: ``ids`` (B, T), ``mask`` (B, T) true at words, ``lengths`` (B,),
    and their ``vectors`` (B, T, D).

    ``static`` (B, T, D) are the untouched copies of tuned vectors, for an architecture that asks
    for both. ``spellings`` (B, T) number the words by their letters: unknown words share one id,
    but two of them are the same word only if their spelling is (0 at padding).
    """

    ids: Tensor
    mask: Tensor
    lengths: Tensor
    vectors: Tensor = torch.empty(0)
    static: Tensor = torch.empty(0)
    spellings: Tensor = torch.empty(0)


def spelling(word: str) -> int:
    """A positive 31-bit number of the word's letters."""
    return crc32(word.encode()) >> 1 or 1


class _Numbers(dict[str, int]):
    """Words in the order in which they were first asked for, and their places: what a word is worth
    is found once, not each time."""

    def __missing__(self, word: str) -> int:
        self[word] = place = len(self)
        return place


@dataclass
class Words(VocabularyView):
    """Words, lower-cased; those seen less than ``min_count`` times in training are the unknown
    word; cut after ``max_length``. With ``digits``, each digit is read as 0.

    A view that reads other words overrides ``split`` (a text's words) or ``form`` (what a word
    counts as), of which the rest is made.
    """

    lower: bool = True
    min_count: int = 2
    max_length: int = 400
    digits: bool = False
    embeds: ClassVar[bool] = True
    divides: ClassVar[bool] = True

    def split(self, text: Text) -> list[str]:
        """The words of a text as they are written, or their pieces."""
        return self.divided(words_of(text))[: self.max_length] or [""]

    def cuts(self, text: Text) -> bool:
        return len(self.divided(words_of(text))) > self.max_length

    def form(self, word: str) -> str:
        """The entry of the vocabulary that a written word counts as."""
        word = word.lower() if self.lower else word
        return DIGIT.sub("0", word) if self.digits else word

    def read(self, text: Text) -> list[str]:
        """The words of a text as this view sees them."""
        return list(map(self.form, self.split(text)))

    def fit(self, texts: Sequence[Text]) -> None:
        self.vocabulary = Vocabulary.of((word for text in texts for word in self.read(text)), self.min_count)

    def encode(self, texts: Sequence[Text]) -> Columns:
        numbers = _Numbers()
        places: list[int] = []
        offsets = [0]
        for text in texts:  # none of the words is kept, which would take longer than finding them
            places.extend(map(numbers.__getitem__, self.split(text)))
            offsets.append(len(places))
        distinct = list(map(self.form, numbers))
        ids = np.array(self.vocabulary.ids(distinct), dtype=np.int32)
        spellings = np.array([spelling(word) for word in distinct], dtype=np.int32)
        index, bounds = np.array(places, dtype=np.intp), np.array(offsets)
        return {"ids": Ragged(ids[index], bounds), "spellings": Ragged(spellings[index], bounds)}

    def collate(self, columns: Columns, rows: np.ndarray) -> WordBatch:
        ids, lengths = columns["ids"].pad(rows, PAD)
        spellings, _ = columns["spellings"].pad(rows, 0)
        return WordBatch(
            torch.from_numpy(ids).long(),
            mask_of(lengths, ids.shape[1]),
            torch.from_numpy(lengths),
            spellings=torch.from_numpy(spellings).long(),
        )

    def spans(self, texts: Sequence[str]) -> tuple[Ragged, Ragged]:
        """Character offsets at which each word begins and ends, for copying an answer out of a raw
        text."""
        found = [[m.span() for m in WORD.finditer(text)][: self.max_length] or [(0, 0)] for text in texts]
        return Ragged.of([s for s, _ in spans] for spans in found), Ragged.of([e for _, e in spans] for spans in found)
