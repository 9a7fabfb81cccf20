"""Units of meaning in a text, phrases and names, marked at its word pieces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from architectures.blocks.spans import FUNCTION_WORDS, is_word
from harness.ragged import Columns, Ragged
from harness.views.base import WORD, Text
from harness.views.subwords import SubwordBatch, Subwords

IN_PHRASE, IN_NAME, CAPITAL = 1, 2, 4
"""Marks of a piece, which are added: it goes on with the phrase, or the name, of the piece before
it; its word begins with a capital."""
LONGEST = 4
"""Words of a phrase or a name; a longer run of words is several."""


def goes_on(inside: np.ndarray) -> np.ndarray:
    """True at the words (N,) that go on with the run of words ``inside`` in which they stand, a run
    being cut behind each :data:`LONGEST` words.

    >>> goes_on(np.array([1, 1, 0, 1, 1, 1, 1, 1, 1], bool)).astype(int).tolist()
    [0, 1, 0, 0, 1, 1, 1, 0, 1]
    """
    places = np.arange(len(inside))
    behind = places - np.maximum.accumulate(np.where(inside, -1, places)) - 1
    return inside & (behind % LONGEST > 0)


def marks_of(text: str, starts: Sequence[int]) -> np.ndarray:
    """The marks (T,) of the pieces of a text that begin at these characters.

    A phrase is a run of words between marks and :data:`~architectures.blocks.spans.FUNCTION_WORDS`
    (as the candidates for keywords of Rose et al. 2010 are), a name one of such words that all
    begin with a capital. All pieces of a word belong to one unit.
    """
    words = list(WORD.finditer(text))
    if not words or not len(starts):
        return np.zeros(len(starts), dtype=np.int32)
    phrase = np.array([is_word(word[0]) and word[0].lower() not in FUNCTION_WORDS for word in words])
    capital = np.array([word[0][0].isupper() for word in words])
    of_words = IN_PHRASE * goes_on(phrase) + IN_NAME * goes_on(phrase & capital) + CAPITAL * capital
    word = np.searchsorted([each.start() for each in words], starts, side="right") - 1
    within = np.append(False, word[1:] == word[:-1])
    return (of_words[word] | (IN_PHRASE | IN_NAME) * within).astype(np.int32)


@dataclass
class MarkedSubwords(Subwords):
    """Word pieces, each of which has :func:`marks_of` where one raw text is read."""

    def encode(self, texts: Sequence[Text]) -> Columns:
        if len(texts) and isinstance(texts[0], list):
            return super().encode(texts)
        ids, marks = [], []
        for text, encoding in zip(texts, self._encodings(texts), strict=True):
            ids.append(np.array(encoding.ids, dtype=np.int32))
            marks.append(marks_of(str(text), [start for start, _ in encoding.offsets]))
        return {"ids": Ragged.of(ids), "marks": Ragged.of(marks)}

    def cut(self, columns: Columns, longest: int) -> Columns:
        return {
            name: super(MarkedSubwords, self).cut({"ids": column}, longest)["ids"] for name, column in columns.items()
        }

    def collate(self, columns: Columns, rows: np.ndarray) -> SubwordBatch:
        batch = super().collate(columns, rows)
        if "marks" not in columns:
            return batch
        found: Ragged = columns["marks"]  # type: ignore[assignment]
        marks = torch.zeros_like(batch.ids)
        marks[:, 1:-1] = torch.from_numpy(found.pad(rows)[0])[:, : marks.shape[1] - 2]
        return batch._replace(marks=marks.masked_fill(~batch.mask | (batch.ids == self.separator), 0))
