"""Spans of pieces are taken out of a text and written by a decoder (Raffel et al. 2020: 3.1.4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from architectures.blocks.chosen_places import numbered
from architectures.blocks.cued_pieces import SENTINELS, CuedPieces
from harness.layers.noise import Noise
from harness.problems.language_model import Surprise
from harness.problems.text_objective import Foretold, TextObjective, batches, summed
from harness.task import Row
from harness.views.subwords import SubwordBatch


class Removed(NamedTuple):
    """The texts without the spans, and what is to be written (B, U), with its mask."""

    source: SubwordBatch
    target: Tensor
    mask: Tensor


def divided(totals: Tensor, counts: Tensor, numbers: Tensor) -> Tensor:
    """Lengths (B, most) of ``counts`` (B,) runs, each 1 at least, whose sums are ``totals`` (B,):
    of all such lengths one as probable as the other, by ``numbers`` (B, T) between 0 and 1. Those
    behind the last run are 0."""
    places = torch.arange(numbers.shape[1], device=numbers.device)
    inside = places < totals[:, None]
    order = numbers.masked_fill(~inside | (places == 0), 2).argsort(1).argsort(1)
    runs = (order < counts[:, None] - 1).cumsum(1)
    lengths = torch.zeros(len(totals), int(counts.max().clamp(min=1)), dtype=torch.long, device=numbers.device)
    return lengths.scatter_add(1, runs, inside.long())


def picked(ids: Tensor, kept: Tensor, padding: int) -> tuple[Tensor, Tensor]:
    """The pieces (B, U) of ``ids`` (B, T) that are ``kept``, close together, with their mask."""
    places, mask = numbered(kept)
    return ids.gather(1, places).masked_fill(~mask, padding), mask


def of_spans(target: Tensor, view: CuedPieces) -> Tensor:
    """True (B, U) at the pieces of a target that are taken from the text."""
    marks = torch.tensor([*view.sentinels, view.separator, view.pad], device=target.device)
    return ~torch.isin(target, marks)


class RemovedSpans(TextObjective):
    """A ``share`` of the pieces is taken out, in spans of a ``mean`` length, each of which leaves a
    sentinel behind; the decoder writes each sentinel, the span behind it, and the end.

    A text is taken as a ring, so that each of its places is asked as often as the others: a span
    that goes over the end goes on at the beginning, as one more. A text of one piece loses nothing.
    A score counts the pieces of spans alone: sentinels and ends say how many spans there are, of
    which training, whose texts are put together, has more than a text that is read alone.
    """

    unit = "pieces of removed spans"
    share, mean = 0.15, 3.0

    @classmethod
    def chosen(cls, lengths: Tensor, noise: Noise, width: int) -> Tensor:
        """True (B, ``width``) at the pieces that are taken out of texts of these ``lengths``
        (B,)."""
        removed = (cls.share * lengths.double()).round().long().clamp(min=1)
        removed = removed.minimum(lengths - 1).clamp(min=0)
        spans = (removed / cls.mean).round().long().clamp(1, SENTINELS - 1).minimum(removed)
        inner, outer = noise.uniform(width), noise.uniform(width)
        runs = torch.stack([divided(lengths - removed, spans, outer), divided(removed, spans, inner)], -1).flatten(1)
        places = torch.arange(width, device=lengths.device).expand(len(lengths), -1).contiguous()
        turned = (places + (noise.uniform(1) * lengths[:, None]).long()) % lengths.clamp(min=1)[:, None]
        run = torch.searchsorted(runs.cumsum(1), turned, right=True)
        return (run % 2 == 1) & (places < lengths[:, None])

    @classmethod
    def questions(cls, pieces: SubwordBatch, view: CuedPieces, noise: Noise) -> Removed:
        """The texts as they are read, and what is asked for."""
        chosen = cls.chosen(pieces.lengths - 1, noise, pieces.ids.shape[1])
        begins = chosen & ~F.pad(chosen[:, :-1], (1, 0))
        sentinels = torch.tensor(view.sentinels, device=chosen.device)
        marks = sentinels[(begins.cumsum(1) - 1).clamp(min=0)]
        ids, mask = picked(torch.where(begins, marks, pieces.ids), pieces.mask & (begins | ~chosen), view.pad)
        source = SubwordBatch(ids, mask, torch.zeros_like(ids), mask.sum(1))
        end = torch.arange(chosen.shape[1], device=chosen.device) == pieces.lengths[:, None] - 1
        both = torch.stack([marks, pieces.ids], -1).flatten(1)
        return Removed(source, *picked(both, torch.stack([begins, chosen | end], -1).flatten(1), view.pad))

    def forward(self, encoder: Any, pieces: SubwordBatch, noise: Noise) -> Foretold:
        source, target, mask = self.questions(pieces, encoder.view, noise)
        logs = encoder.told(source, target, mask)
        if self.training:
            return Foretold.at(logs, mask)
        counted = of_spans(target, encoder.view)
        return Foretold.at(logs[counted[mask]], counted)

    @classmethod
    def floor(cls, view: Any, train: Sequence[Row], rows: Sequence[Row]) -> list[Surprise]:
        """Each piece by its share of what would be asked of the training texts, every piece of the
        vocabulary counted once more."""

        def asked(rows: Sequence[Row]) -> Iterator[tuple[Tensor, Tensor]]:
            for pieces in batches(view, rows):
                target = cls.questions(pieces, view, Noise(pieces.ids, pieces.mask)).target
                yield target, of_spans(target, view)

        counts = torch.ones(view.width)
        for target, counted in asked(train):
            counts += target[counted].bincount(minlength=view.width)
        logs, found = (counts / counts.sum()).log(), []
        for target, counted in asked(rows):
            found += summed(Foretold.at(logs[target[counted]], counted), len(target))
        return found
