"""Texts, or pairs of them read as one sequence, as whole words with their characters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from harness.ragged import Columns, Ragged
from harness.views.base import Text, words_of
from harness.views.subwords import SPECIAL, SubwordBatch, Windows
from harness.views.whole_words import WholeWords

OTHER, BEGIN, END = 1, 2, 3
"""Numbers of a character beyond Latin-1, and of the marks at both ends of a word; 0 is padding.
Other characters have the number that Latin-1 gives them, from 32 on."""
CHARACTERS = 256
"""Number of character numbers."""
MARKS = {"[PAD]": 0, "[CLS]": 4, "[SEP]": 5}
"""The characters of marks that are no words."""


class SpeltBatch(NamedTuple):
    """A :class:`~harness.views.subwords.SubwordBatch` with the ``characters`` (B, T, C) of each
    word, a mark at both ends and 0 behind them."""

    ids: Tensor
    mask: Tensor
    segments: Tensor
    lengths: Tensor
    firsts: Tensor = torch.empty(0)
    word_mask: Tensor = torch.empty(0)
    windows: Windows | None = None
    marks: Tensor = torch.empty(0)
    characters: Tensor = torch.empty(0)


def number_of(character: str) -> int:
    """The number of a character."""
    return ord(character) if 32 <= ord(character) < CHARACTERS else OTHER


def spelt(word: str, length: int) -> np.ndarray:
    """The first characters of a word and the marks around them (length + 2,)."""
    numbers = [BEGIN, *map(number_of, word[:length]), END]
    return np.array(numbers + [0] * (length + 2 - len(numbers)), dtype=np.uint8)


@dataclass
class SpeltWords(WholeWords):
    """Whole words, beside the first ``word_length`` characters of each in their case: of words
    that are unknown too."""

    word_length: int = 20

    @property
    def marks(self) -> np.ndarray:
        """The characters (5, C) of the special pieces."""
        rows = np.zeros((len(SPECIAL), self.word_length + 2), dtype=np.uint8)
        for number, name in enumerate(SPECIAL):
            mark = MARKS.get(name, OTHER)
            rows[number, :3] = (BEGIN, mark, END) if mark else 0
        return rows

    def encode(self, texts: Sequence[Text]) -> Columns:
        columns = super().encode(texts)
        known: dict[str, np.ndarray] = {}
        rows = []
        for text in texts:
            for word in words_of(text):
                if word not in known:
                    known[word] = spelt(word, self.word_length)
                rows.append(known[word])
        characters = np.stack(rows) if rows else np.zeros((0, self.word_length + 2), dtype=np.uint8)
        return columns | {"characters": Ragged(characters, columns["ids"].offsets)}

    def cut(self, columns: Columns, longest: int) -> Columns:
        return self._in_stretches(super().cut(_all_placed(columns), longest), columns)

    def packed(self, columns: Columns) -> Columns:
        return self._in_stretches(super().packed(_all_placed(columns)), columns)

    def _in_stretches(self, placed: Columns, columns: Columns) -> Columns:
        places: Ragged = placed["ids"]
        ids, characters = self._found(places.values, columns)
        return {"ids": Ragged(ids, places.offsets), "characters": Ragged(characters, places.offsets)}

    def collate(self, columns: Columns, rows: np.ndarray) -> SpeltBatch:  # type: ignore[override]
        return self._spelt(super().collate(_placed(columns, 0), rows), columns)

    def collate_pair(  # type: ignore[override]
        self, first: Columns, second: Columns, rows: np.ndarray, cut: Literal["longer", "second"] = "longer"
    ) -> SpeltBatch:
        behind = _placed(second, len(first["ids"].values))
        return self._spelt(super().collate_pair(_placed(first, 0), behind, rows, cut), first, second)

    def _spelt(self, placed: SubwordBatch, *texts: Columns) -> SpeltBatch:
        """A batch in which words are numbered by their place in the columns of some texts, with
        what stands there."""
        ids, characters = self._found(placed.ids.numpy(), *texts)
        return SpeltBatch(
            **placed._replace(ids=torch.from_numpy(ids))._asdict(), characters=torch.from_numpy(characters)
        )

    def _found(self, places: np.ndarray, *texts: Columns) -> tuple[np.ndarray, np.ndarray]:
        """Pieces, and their characters, at places in the columns of some texts, one behind the
        other; below :data:`SPECIAL`'s number a place is a special piece itself."""
        ids = places.astype(np.int64)
        characters = self.marks[np.where(places < len(SPECIAL), places, 0)]
        begin = len(SPECIAL)
        for columns in texts:
            values, spellings = columns["ids"].values, columns["characters"].values
            inside = (places >= begin) & (places < begin + len(values))
            ids[inside] = values[places[inside] - begin]
            characters[inside] = spellings[places[inside] - begin]
            begin += len(values)
        return ids, characters


class _Places:
    """The whole numbers from ``begin`` on, each made where it is asked for: a batch has few of the
    words of a corpus."""

    def __init__(self, begin: int):
        self.begin = begin

    def __getitem__(self, index: np.ndarray) -> np.ndarray:
        return index + self.begin


def _placed(columns: Columns, behind: int) -> Columns:
    """Columns whose words are numbered by their place, ``behind`` so many others."""
    places: Any = _Places(len(SPECIAL) + behind)
    return columns | {"ids": Ragged(places, columns["ids"].offsets)}


def _all_placed(columns: Columns) -> Columns:
    """Columns whose words are numbered by their place, all of them."""
    ids: Ragged = columns["ids"]
    return columns | {"ids": Ragged(len(SPECIAL) + np.arange(len(ids.values)), ids.offsets)}
