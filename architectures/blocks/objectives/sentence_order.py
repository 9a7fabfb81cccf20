"""The order of two segments of a text, told beside its masked n-grams (Lan et al. 2020: 3.1)."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.objectives.masked_pieces import MaskedPieces, content, sentence_ends
from architectures.blocks.objectives.word_spans import beginnings, in_spans
from harness.layers.noise import Noise
from harness.objectives import add_loss
from harness.problems.text_objective import Foretold
from harness.views.subwords import SubwordBatch, Subwords

LONGEST = 3
"""Words of the longest n-gram; one of n words has a probability proportional to 1 / n."""


class Segments(NamedTuple):
    """Two segments of each text: the ``places`` (B, U) in the text of what is read, ``mask`` and
    ``second`` (B, U) true at real places and at those of the second segment, and whether there are
    two, and they are ``swapped`` (B,)."""

    places: Tensor
    mask: Tensor
    second: Tensor
    two: Tensor
    swapped: Tensor

    def read(self, ids: Tensor, padding: int) -> SubwordBatch:
        """Pieces (B, T) of the texts in this arrangement."""
        arranged = ids.gather(1, self.places).masked_fill(~self.mask, padding)
        return SubwordBatch(arranged, self.mask, self.second.long(), self.mask.sum(1))


def segment_ends(pieces: SubwordBatch, view: Subwords) -> Tensor:
    """True (B, T) at the pieces behind which another sentence of the text begins; in a text of one
    sentence, another word."""
    begins = beginnings(pieces, view)
    between = content(pieces, view) & F.pad(begins[:, 1:], (0, 1))
    ends = between & torch.isin(pieces.ids, sentence_ends(view).to(pieces.ids.device))
    return torch.where(ends.any(1, keepdim=True), ends, between)


def whole(pieces: SubwordBatch, view: Subwords) -> Tensor:
    """False (B,) for stretches that show where a text was cut: those that fill the sequence without
    a sentence's end behind them, and those that begin inside a word. With these ends in front or
    behind, the order of two segments could be told by the cut."""
    last = (pieces.mask.sum(1) - 2).clamp(min=0)
    ended = torch.isin(pieces.ids.gather(1, last[:, None])[:, 0], sentence_ends(view).to(last.device))
    within = torch.from_numpy(view.continues).to(last.device)[pieces.ids[:, 1]]
    return (ended | (last + 2 < view.max_length)) & ~within


def segments(pieces: SubwordBatch, view: Subwords, noise: Noise) -> Segments:
    """``[CLS]`` a ``[SEP]`` b ``[SEP]``, a and b being the two parts of each text ``[CLS]`` a b
    ``[SEP]``, in this order or, half of the time, in the other.

    A text of one word, and one that was cut, stays as it is. Where a text fills the sequence the
    last separator is left out.
    """
    ends = segment_ends(pieces, view)
    numbers, half = noise.uniform(ends.shape[1]), noise.uniform()
    two = ends.any(1) & whole(pieces, view)
    swapped = two & (half < 0.5)
    separator = pieces.mask.sum(1) - 1
    end = torch.where(two, numbers.masked_fill(~ends, 2).argmin(1), separator - 1)
    first = torch.where(swapped, separator - 1 - end, end)[:, None]  # pieces of the segment in front
    skipped = torch.where(swapped, end, 0)[:, None]
    back = torch.where(swapped, 0, end)[:, None]
    place = torch.arange(min(ends.shape[1] + 1, view.max_length), device=ends.device).expand(len(ends), -1)
    places = torch.where(place <= first, skipped + place, back + place - first - 1)
    places = torch.where(place == 0, 0, places)
    marks = (place == first + 1) | (place > separator[:, None])
    places = torch.where(marks, separator[:, None], places)
    mask = place <= (separator + two)[:, None]
    return Segments(places, mask, mask & (place > first + 1), two, swapped)


class SentenceOrder(MaskedPieces):
    """N-grams of whole words are masked, and of two segments that follow one another in a text the
    model tells by the vector of the text whether they are in their order."""

    unit = "pieces of masked n-grams"
    packs = False

    def __init__(self, encoder: Any):
        super().__init__(encoder)
        self.order = nn.Linear(encoder.size, 1)

    @classmethod
    def chosen(cls, pieces: SubwordBatch, view: Subwords, noise: Noise) -> Tensor:
        law = 1 / torch.arange(1.0, LONGEST + 1)
        return in_spans(pieces, view, noise, law / law.sum(), cls.share)

    def told(self, encoder: Any, pieces: SubwordBatch, noise: Noise) -> tuple[Foretold, Tensor]:
        view = encoder.view
        chosen = self.chosen(pieces, view, noise)
        hidden = self.hidden(pieces.ids, chosen, view, noise)
        order = segments(pieces, view, noise)
        states = encoder(order.read(hidden, view.pad))
        scores = self.order(encoder.pooler(states[:, 0]))[:, 0][order.two]
        wrong = F.binary_cross_entropy_with_logits(scores, order.swapped[order.two].to(scores.dtype), reduction="sum")
        add_loss("order", wrong / max(1, len(scores)))
        asked = chosen.gather(1, order.places) & order.mask
        words = pieces.ids.gather(1, order.places)[asked]
        return Foretold.at(self.scores(encoder, states[asked], words), asked), states
