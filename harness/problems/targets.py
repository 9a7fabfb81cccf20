"""What is to be predicted, as numbers: one target per task type, fitted on the training rows and
turned back by the heads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from harness.errors import DataError
from harness.ragged import Columns, Ragged
from harness.task import Row
from harness.views.base import View, words_of
from harness.views.words import Vocabulary

IGNORED = -100
"""Label of a position that has none (padding, an answer beyond the cut): no loss there."""


class Target:
    """Rows to flat arrays, and arrays to a batch's tensor."""

    def fit(self, rows: Sequence[Row]) -> None:
        """Learn the label set from the training rows."""

    def encode(self, rows: Sequence[Row], view: View) -> Columns:
        """Flat arrays of the rows' answers."""
        raise NotImplementedError

    def collate(self, columns: Columns, rows: np.ndarray) -> Any:
        """Tensors for the given rows."""
        raise NotImplementedError


def _numbers(labels: list[str]) -> dict[str, int]:
    return {label: number for number, label in enumerate(labels)}


def _number(known: dict[str, int], label: str, row: Row) -> int:
    if label not in known:
        raise DataError(
            f"row {row['id']}: label {label!r} does not occur in the training split (known: {', '.join(known)})"
        )
    return known[label]


class ClassTarget(Target):
    """One class per row: int64 (B,)."""

    labels: list[str]

    def fit(self, rows: Sequence[Row]) -> None:
        self.labels = sorted({row["label"] for row in rows})

    def encode(self, rows: Sequence[Row], view: View) -> Columns:
        known = _numbers(self.labels)
        return {"label": np.array([_number(known, row["label"], row) for row in rows], dtype=np.int64)}

    def collate(self, columns: Columns, rows: np.ndarray) -> Tensor:
        return torch.from_numpy(columns["label"][rows])


class AnswerTarget(ClassTarget):
    """One word per row, as its number among the training answers: int64 (B,). The last number is
    every word that is none of them."""

    def fit(self, rows: Sequence[Row]) -> None:
        self.labels = [*sorted({row["answer"] for row in rows}), ""]

    def encode(self, rows: Sequence[Row], view: View) -> Columns:
        known = _numbers(self.labels)
        return {"label": np.array([known.get(row["answer"], known[""]) for row in rows], dtype=np.int64)}


class RankTarget(Target):
    """Right (1) or wrong (0) per pair, and the number of its question: two int64 (B,)."""

    def encode(self, rows: Sequence[Row], view: View) -> Columns:
        groups = {group: number for number, group in enumerate(dict.fromkeys(row["group"] for row in rows))}
        return {
            "label": np.array([_number({"0": 0, "1": 1}, row["label"], row) for row in rows], dtype=np.int64),
            "group": np.array([groups[row["group"]] for row in rows], dtype=np.int64),
        }

    def collate(self, columns: Columns, rows: np.ndarray) -> tuple[Tensor, Tensor]:
        return torch.from_numpy(columns["label"][rows]), torch.from_numpy(columns["group"][rows])


class TagTarget(Target):
    """One label per word: int64 (B, T), ignored at padding. A label that training never showed is
    ignored too; scoring still counts it."""

    def fit(self, rows: Sequence[Row]) -> None:
        self.labels = sorted({tag for row in rows for tag in row["tags"]})

    def encode(self, rows: Sequence[Row], view: View) -> Columns:
        known = _numbers(self.labels)
        cut = getattr(view, "max_length", None)
        return {"tags": Ragged.of([known.get(tag, IGNORED) for tag in row["tags"][:cut]] for row in rows)}

    def collate(self, columns: Columns, rows: np.ndarray) -> Tensor:
        return torch.from_numpy(columns["tags"].pad(rows, IGNORED)[0]).long()


class SpanTarget(Target):
    """First and last unit of the answer in the passage: int64 (B, 2); -1 without an answer, ignored
    when it lies beyond the cut."""

    def fit(self, rows: Sequence[Row]) -> None:
        self.unanswerable = any(not row["answers"]["text"] for row in rows)

    def encode(self, rows: Sequence[Row], view: Any) -> Columns:
        starts, ends = view.spans([row["passage"] for row in rows])
        spans = [self._units(row, starts[i], ends[i]) for i, row in enumerate(rows)]
        return {"span": np.array(spans, dtype=np.int64), "starts": starts, "ends": ends}

    @staticmethod
    def _units(row: Row, starts: np.ndarray, ends: np.ndarray) -> tuple[int, int]:
        if not row["answers"]["text"]:
            return -1, -1
        begin = row["answers"]["start"][0]
        finish = begin + len(row["answers"]["text"][0].rstrip())
        first, last = int(np.searchsorted(ends, begin, "right")), int(np.searchsorted(starts, finish, "left")) - 1
        return (first, last) if first <= last < len(ends) and ends[-1] >= finish else (IGNORED, IGNORED)

    def collate(self, columns: Columns, rows: np.ndarray) -> Tensor:
        return torch.from_numpy(columns["span"][rows])


class SymbolTarget(Target):
    """A string as symbols: characters of a transcript, or words of an answer. Int64 (B, U), 0
    behind the end.

    ``reserved`` numbers come before the symbols: 1 for CTC's blank; 4 for generation (padding,
    start, end, unknown).
    """

    def __init__(self, reserved: int, by_word: bool):
        self.reserved, self.by_word = reserved, by_word

    def split(self, text: str) -> list[str]:
        """The symbols of a text."""
        return [word.lower() for word in words_of(text)] if self.by_word else list(text)

    def join(self, symbols: Sequence[int]) -> str:
        """The text of symbol numbers; reserved numbers are left out."""
        found = [self.symbols[s - self.reserved] for s in symbols if s >= self.reserved]
        return (" " if self.by_word else "").join(found).strip()

    @staticmethod
    def text(row: Row) -> str:
        """What a row asks for: its transcript, or its first answer (empty when it has none)."""
        return row["transcript"] if "transcript" in row else next(iter(row["answers"]["text"]), "")

    def fit(self, rows: Sequence[Row]) -> None:
        self.symbols = Vocabulary.of(
            (s for row in rows for s in self.split(self.text(row))), min_count=2 if self.by_word else 1
        ).words

    def __len__(self) -> int:
        return self.reserved + len(self.symbols)

    def encode(self, rows: Sequence[Row], view: View) -> Columns:
        known = {symbol: number for number, symbol in enumerate(self.symbols, start=self.reserved)}
        unknown = 3 if self.reserved > 3 else None
        coded = [[known.get(s, unknown) for s in self.split(self.text(row))] for row in rows]
        return {"symbols": Ragged.of([s for s in row if s is not None] for row in coded)}

    def collate(self, columns: Columns, rows: np.ndarray) -> tuple[Tensor, Tensor]:
        padded, lengths = columns["symbols"].pad(rows, 0)
        return torch.from_numpy(padded).long(), torch.from_numpy(lengths)
