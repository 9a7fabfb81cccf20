"""Masked units: words, phrases and names are hidden whole (Sun et al. 2019: 3.2)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from architectures.blocks.objectives.masked_pieces import content
from architectures.blocks.objectives.next_sentence import NextSentence
from architectures.blocks.objectives.word_spans import beginnings
from architectures.blocks.units import IN_NAME, IN_PHRASE
from harness.layers.noise import Noise
from harness.views.subwords import SubwordBatch, Subwords

STAGES = (0, IN_PHRASE, IN_NAME)
"""Marks of the pieces that go on with a unit, beside those that go on with a word: one for each
third of a training, in which words, phrases and names are units."""


def unit_beginnings(pieces: SubwordBatch, view: Subwords, mark: int | Tensor) -> Tensor:
    """True (B, T) at the pieces with which units begin: words, and of those with the ``mark`` that
    stand together the first one. The mark may be another for each text (B, 1)."""
    follows = F.pad(content(pieces, view)[:, :-1], (1, 0))
    return beginnings(pieces, view) & ~(follows & ((pieces.marks & mark) > 0))


def whole_units(pieces: SubwordBatch, view: Subwords, noise: Noise, mark: int | Tensor, share: float) -> Tensor:
    """True (B, T) at all pieces of a share of the units of each text, and of one at least."""
    allowed = content(pieces, view)
    places = torch.arange(allowed.shape[1], device=allowed.device)
    first = torch.where(unit_beginnings(pieces, view, mark), places, 0).cummax(1).values
    numbers = noise.uniform(len(places)).gather(1, first).masked_fill(~allowed, 2)
    return allowed & ((numbers < share) | (numbers == numbers.amin(1, keepdim=True)))


class MaskedUnits(NextSentence):
    """BERT's objective, with whole units masked: words in the first third of the training, then
    phrases and other words, then names and other words.

    Each unit has the same probability. In evaluation single pieces are asked, as of BERT.
    """

    last_phase = 2 / 3

    @classmethod
    def chosen(cls, pieces: SubwordBatch, view: Subwords, noise: Noise) -> Tensor:
        if not noise.anew:
            return super().chosen(pieces, view, noise)
        stage = min(int(noise.progress * len(STAGES)), len(STAGES) - 1)
        return whole_units(pieces, view, noise, STAGES[stage], cls.share)
