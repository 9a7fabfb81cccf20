"""The contract of a view, and the tokeniser that all word-reading views share."""

from __future__ import annotations

import dataclasses
import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from harness.ragged import Columns

Text = str | list[str]
"""A raw text, or the list of its words where the corpus comes tokenised."""

_MARKS = "".join(c for c in map(chr, range(0x300, 0x20000)) if unicodedata.category(c)[0] == "M")
"""Signs that stand on, under or behind a letter: accents, vowels of Hindi, Hebrew and Arabic. They
belong to its word, and are no letters themselves to a regular expression."""
# Only behind a run of letters, and there beyond Latin-1, is it worth to look for them.
_RUN = rf"\w++(?:(?![\0-\u02ff])[{_MARKS}]++\w*+)*+"
WORD = re.compile(rf"{_RUN}(?:['’]{_RUN})?|[^\w\s]")
"""A run of letters and digits, with signs on them and an inner apostrophe, or one other mark."""


def words_of(text: Text) -> list[str]:
    """Words of a text: as given when it is tokenised, else letters-and-digits runs and single
    marks."""
    return text if isinstance(text, list) else WORD.findall(text)


def plain(text: Text) -> str:
    """A text as one string; the words of a tokenised one joined by spaces."""
    return text if isinstance(text, str) else " ".join(text)


class View(ABC):
    """A way to read texts. Subclasses are dataclasses: their fields are the settings, everything
    else is fitted.

    ``column`` names the data column that this view reads instead of ``text`` (a tree, an audio
    file); ``embeds`` says that the model puts word vectors into its batches; ``joins`` that two
    texts are read as one sequence. ``may_be_zero`` are numbers among the settings that need not be
    positive.
    """

    column: ClassVar[str] = "text"
    embeds: ClassVar[bool] = False
    joins: ClassVar[bool] = False
    may_be_zero: ClassVar[tuple[str, ...]] = ()

    @property
    @abstractmethod
    def width(self) -> int:
        """Size of one input vector, for a view that brings its own; number of rows of the table it
        indexes, otherwise."""

    @abstractmethod
    def fit(self, texts: Sequence[Any]) -> None:
        """Learn vocabulary or statistics from the training texts."""

    @property
    def adopts(self) -> bool:
        """True where :meth:`fit` reads a folder besides, which may hold another thing next time."""
        return False

    @abstractmethod
    def encode(self, texts: Sequence[Any]) -> Columns:
        """Flat arrays of the texts, in their order."""

    def cuts(self, text: Any) -> bool:
        """True for a text that is not read to its end, as far as is known before :meth:`fit`."""
        return False

    @abstractmethod
    def lengths(self, columns: Columns) -> np.ndarray:
        """Number of units (words, characters, frames, ...) of each text: for buckets and for
        counting tokens."""

    @abstractmethod
    def collate(self, columns: Columns, rows: np.ndarray) -> Any:
        """The batch of the given rows: a NamedTuple of tensors."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Results of :meth:`fit`, as JSON values."""

    @abstractmethod
    def restore(self, state: dict[str, Any]) -> None:
        """Undo :meth:`state`."""

    def settings(self) -> dict[str, Any]:
        """Name and settings: with the data's fingerprint, the identity of an encoded corpus."""
        return {"view": type(self).__name__, **dataclasses.asdict(self)}  # type: ignore[call-overload]

    def changed(self, settings: Mapping[str, Any]) -> Self:
        """An unfitted view with some settings otherwise; ``ValueError`` for one that it cannot
        have."""
        for name, value in settings.items():
            least = 0 if name in self.may_be_zero else 1
            if type(value) is int and value < least:
                raise ValueError(f"{name}={value}: a whole number from {least} is expected")
        return dataclasses.replace(self, **settings)  # type: ignore[type-var]
