"""The beginning and the end of texts that are too long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.ragged import Columns, Ragged
from harness.views.base import Text
from harness.views.subwords import Subwords


@dataclass
class HeadAndTail(Subwords):
    """Word pieces: of a raw text that is too long its first ``head`` ones, and as many of its last
    ones as there is room for. ``ValueError`` for a head that leaves none."""

    head: int = 32

    def encode(self, texts: Sequence[Text]) -> Columns:
        tail = self.room - self.head
        if tail < 1:
            raise ValueError(f"head={self.head}: expected is less than the {self.room} pieces of a text that are read")
        columns = super().encode(texts)
        if "firsts" in columns:
            return columns
        pieces: Ragged = columns["ids"]  # type: ignore[assignment]
        whole = (pieces[row] for row in range(len(pieces)))
        return {
            "ids": Ragged.of(
                text if len(text) <= self.room else np.concatenate([text[: self.head], text[-tail:]]) for text in whole
            )
        }
