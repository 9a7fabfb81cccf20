"""Masked pieces of two segments, and whether the second one follows the first (Devlin et al. 2018:
3.1)."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.objectives.masked_pieces import MaskedPieces, sentence_ends
from harness.layers.noise import Noise
from harness.objectives import add_loss
from harness.problems.text_objective import Foretold
from harness.views.subwords import SubwordBatch, Subwords


def divided(pieces: SubwordBatch, ends: Tensor, longest: int, noise: Noise) -> Tensor:
    """The number (B,) of pieces of each text that are its first segment: those up to one of the
    ``ends``, where there is one inside, else up to any.

    Both segments have a piece at least, also in a sequence of the ``longest`` length; a text of one
    piece has no second segment.
    """
    places = torch.arange(pieces.ids.shape[1], device=pieces.ids.device)
    length = pieces.lengths[:, None] - 2
    inside = (places >= 1) & (places < length) & (places < longest - 3)
    after = inside & torch.isin(pieces.ids, ends)
    allowed = torch.where(after.any(1, keepdim=True), after, inside)
    drawn = noise.uniform(len(places)).masked_fill(~allowed, 2).argmin(1)
    return torch.where(inside.any(1), drawn, length[:, 0])


def joined(
    pieces: SubwordBatch, first: Tensor, source: Tensor, view: Subwords, begins: Tensor | None = None
) -> SubwordBatch:
    """The first segment of each text, and the second one of the text with the number ``source``
    (B,), cut where a sequence is full; ``first`` (B,) pieces are each text's first segment, and its
    second one begins behind ``begins`` (B,) pieces, by default where the first one ends."""
    begins = first if begins is None else begins
    second = torch.minimum((pieces.lengths - 2 - begins)[source], view.max_length - 3 - first)
    lengths = 3 + first + second
    places = torch.arange(int(lengths.max()), device=first.device)
    within = places - first[:, None] - 2  # the number of a place in the second segment
    of_first, of_second = places <= first[:, None], (within >= 0) & (within < second[:, None])
    last = pieces.ids.shape[1] - 1

    def arranged(values: Tensor, between: int) -> Tensor:
        own = values.gather(1, places.clamp(max=last).expand(len(first), -1))
        others = values[source].gather(1, (1 + begins[source, None] + within).clamp(0, last))
        return torch.where(of_first, own, torch.where(of_second, others, between))

    mask = places < lengths[:, None]
    ids = arranged(pieces.ids, view.separator).masked_fill(~mask, view.pad)
    pairs = SubwordBatch(ids, mask, ((within >= 0) & mask).long(), lengths)
    return pairs._replace(marks=arranged(pieces.marks, 0)) if pieces.marks.numel() else pairs


def paired(
    pieces: SubwordBatch, ends: Tensor, view: Subwords, noise: Noise, among: Tensor | None = None
) -> tuple[SubwordBatch, Tensor]:
    """Each text divided in two behind one of the ``ends``, half of the time with the second segment
    of another text of the batch, and 1 (B,) where it is of another, else 0.

    Texts that are not ``among`` (B,) those so treated keep their own; None: all are.
    """
    first = divided(pieces, ends, view.max_length, noise)
    whether, which = noise.uniform(2).unbind(1)
    number, texts = torch.arange(len(first), device=first.device), len(first)
    other = (number + 1 + (which * (texts - 1)).long()) % texts
    strange = (whether < 0.5) & (other != number)
    if among is not None:
        strange = strange & among
    return joined(pieces, first, torch.where(strange, other, number), view), strange.long()


class NextSentence(MaskedPieces):
    """Each text is divided in two; half of the time the second segment is that of another text, and
    the state of the first piece, through the encoder's pooler, tells whether it is. Pieces of both
    segments are masked.

    The other text is one of the same batch, so this term depends on which texts stand together, and
    on the number of devices. It is of training alone. In evaluation each text is one segment, whose
    masked pieces are asked.
    """

    packs = False

    def __init__(self, encoder: Any):
        super().__init__(encoder)
        self.output = nn.Linear(encoder.size, 2)
        self.register_buffer("ends", sentence_ends(encoder.view), persistent=False)

    def pairs(self, pieces: SubwordBatch, view: Subwords, noise: Noise) -> tuple[SubwordBatch, Tensor]:
        """The pairs of segments, and 1 (B,) where the second one is of another text, else 0."""
        return paired(pieces, self.ends, view, noise)

    def forward(self, encoder: Any, pieces: SubwordBatch, noise: Noise) -> Foretold:
        if not noise.anew:
            return super().forward(encoder, pieces, noise)
        pairs, strange = self.pairs(pieces, encoder.view, noise)
        foretold, states = self.told(encoder, pairs, noise)
        add_loss("next sentence", F.cross_entropy(self.output(encoder.pooler(states[:, 0])), strange))
        return foretold
