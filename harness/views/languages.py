"""Word pieces of texts in two languages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer

from harness.ragged import Columns, Ragged, take
from harness.views.base import Text
from harness.views.subwords import SubwordBatch, Subwords

SECOND = "␞"
"""Stands in a text in front of what is in the second of two languages."""


@dataclass
class TwoLanguages(Subwords):
    """Word pieces of raw texts of which all that stands behind :data:`SECOND` is in another
    language.

    A text in both is read as ``[CLS] a [SEP] [CLS] b [SEP]``. ``marks`` are 1 at the pieces of b,
    at its ``[CLS]`` and its ``[SEP]``, and else 0; a tokenised text, and two that are joined, have
    none and are in the first language. Both languages have one vocabulary. ``counts`` (V,) are the
    times that the training texts have each piece.
    """

    def fit(self, texts: Sequence[Text]) -> None:
        super().fit(texts)
        if self.learnt is None:
            ids: Any = self.encode(texts)["ids"]
            self.counts = np.bincount(ids.values, minlength=self.width)

    def _learn(self, texts: list[str]) -> Tokenizer:
        return super()._learn([text.replace(SECOND, " ") for text in texts])

    def encode(self, texts: Sequence[Text]) -> Columns:
        if len(texts) and isinstance(texts[0], list):
            return super().encode(texts)
        sides = [side for text in texts for side in str(text).partition(SECOND)[::2]]
        pieces = (encoding.ids for encoding in self._encodings(sides))
        ids: list[Any] = []
        marks: list[Any] = []
        for first, second in zip(pieces, pieces, strict=True):
            between = [self.separator, self.start] if first and second else []
            ids.append([*first, *between, *second])
            marks.append(np.repeat([0, 1], [len(first) + len(between) // 2, len(second) + len(between) // 2]))
        return {"ids": Ragged.of(ids), "marks": Ragged.of(marks)}

    def collate(self, columns: Columns, rows: np.ndarray) -> SubwordBatch:
        batch = super().collate(columns, rows)
        if "marks" not in columns:
            return batch
        found: Any = columns["marks"]
        last = (batch.lengths[:, None] - 3).clamp(min=0)
        piece = (torch.arange(batch.ids.shape[1]) - 1).clamp(min=0).minimum(last)  # [CLS] and [SEP] are of those beside
        marks = torch.from_numpy(found.pad(rows)[0]).long().gather(1, piece)
        return batch._replace(marks=marks.masked_fill(~batch.mask, 0))

    def packed(self, columns: Columns) -> Columns:
        """The texts of each language one behind another, in stretches that fill a sequence, and
        those in both languages by themselves."""
        if "marks" not in columns:
            return super().packed(columns)
        ids: Any = columns["ids"]
        marks: Any = columns["marks"]
        second = np.diff(np.append(0, marks.values.cumsum())[ids.offsets])
        kinds = np.where(second == 0, 0, np.where(second == ids.lengths, 1, 2))
        first, other, both = (np.flatnonzero(kinds == kind) for kind in range(3))
        read: list[Any] = []
        languages: list[Any] = []
        for language, rows in enumerate((first, other)):
            stream: Any = super().packed({"ids": take(ids, rows)})["ids"]
            read += stream
            languages += (np.full(len(row), language) for row in stream)
        pairs: tuple[Any, Any] = take(ids, both), take(marks, both)
        return {"ids": Ragged.of([*read, *pairs[0]]), "marks": Ragged.of([*languages, *pairs[1]])}

    def state(self) -> dict[str, Any]:
        return super().state() | {"counts": self.counts.tolist()}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self.counts = np.array(state["counts"])
