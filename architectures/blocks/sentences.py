"""Texts as the sentences that stand in them, and what stands beside each."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from architectures.blocks.objectives.masked_pieces import sentence_ends
from harness.layers.noise import Noise
from harness.views.subwords import SubwordBatch, Subwords


def beginnings(words: Tensor, texts: Tensor, ends: Tensor) -> Tensor:
    """True (M,) at the words that begin a sentence: the first one of each text, and those behind
    one of the marks ``ends``. A mark behind a mark is of the same sentence.

    ``words`` (M,) are those of all texts, one behind another, ``texts`` (M,) the number of the text
    of each.
    """
    marks = torch.isin(words, ends)
    begins = torch.ones_like(marks)
    begins[1:] = (marks[:-1] & ~marks[1:]) | (texts[1:] != texts[:-1])
    return begins


class Sentences(NamedTuple):
    """N sentences of the texts of a batch, one behind another, each between the marks of a text of
    its own.

    ``rows`` (N,) are their rows in the batch. One may hold several texts, with separators between
    them: ``texts`` (N,) number these. ``places`` (N, S) are the places of pieces in their rows, 0
    for marks and padding.
    """

    pieces: SubwordBatch
    rows: Tensor
    texts: Tensor
    places: Tensor

    def drawn(self, noise: Noise) -> Tensor:
        """A number (N, S) in [0, 1) for each piece, of those that are drawn for its row."""
        return noise.uniform(int(self.places.max()) + 1)[self.rows].gather(1, self.places)

    def beside(self, step: int) -> SubwordBatch:
        """For each sentence the one that stands ``step`` behind it in its text; before it, for a
        step below 0.

        Where there is none there are no pieces, not even marks. A sentence that is alone in its
        text has an empty one there, of two marks, so that each text has something to tell.
        """
        numbers = torch.arange(len(self.texts), device=self.texts.device) + step
        there = (numbers >= 0) & (numbers < len(numbers))
        numbers = numbers.clamp(0, len(numbers) - 1)
        there &= self.texts[numbers] == self.texts
        alone = self.texts.bincount()[self.texts] == 1
        ids, lengths = self.pieces.ids[numbers], self.pieces.lengths[numbers].where(there, 2 * alone)
        separators = self.pieces.ids.gather(1, self.pieces.lengths[:, None] - 1)
        ids[:, 1:2] = torch.where(there[:, None], ids[:, 1:2], separators)
        return between_marks(ids, lengths)


def between_marks(ids: Tensor, lengths: Tensor) -> SubwordBatch:
    """Pieces (N, S) of texts of these lengths (N,), marks included."""
    mask = torch.arange(ids.shape[1], device=ids.device) < lengths[:, None]
    return SubwordBatch(ids, mask, torch.zeros_like(ids), lengths)


def sentences(pieces: SubwordBatch, view: Subwords, longest: int) -> Sentences:
    """The sentences of texts, of each the first ``longest`` pieces. An empty text is an empty
    sentence."""
    closing, read = pieces.ids == view.separator, pieces.mask.clone()
    read[:, 0] = False
    read[:, 1:] &= ~(closing[:, 1:] & closing[:, :-1])  # rows of training may end with two
    rows, places = read.nonzero().unbind(1)
    words, closing = pieces.ids[read], closing[read]  # each text has one that closes its last sentence
    texts = closing.cumsum(0) - closing.long()
    ends = torch.cat([sentence_ends(view).to(words.device), words[closing][:1]])
    begins = beginnings(words, texts, ends)
    number, first = begins.cumsum(0) - 1, begins.nonzero()[:, 0]
    within = torch.arange(len(words), device=words.device) - first[number]
    kept = (within < longest) & ~closing
    number, within = number[kept], within[kept]
    lengths = 2 + number.bincount(minlength=len(first))
    ids = words.new_full((len(first), int(lengths.max())), view.pad)
    ids[:, 0] = view.start
    ids.scatter_(1, lengths[:, None] - 1, view.separator)
    found = torch.zeros_like(ids)
    ids[number, 1 + within], found[number, 1 + within] = words[kept], places[kept]
    return Sentences(between_marks(ids, lengths), rows[first], texts[first], found)
