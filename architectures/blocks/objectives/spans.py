"""Masked spans of words, told by their own states and by those beside the span (Joshi et al. 2020:
3.1 and 3.2)."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.objectives.masked_pieces import MaskedPieces
from architectures.blocks.objectives.word_spans import in_spans
from harness.layers.noise import Noise
from harness.objectives import add_loss
from harness.problems.text_objective import Foretold
from harness.views.subwords import SubwordBatch, Subwords

ENDS, LONGEST = 0.2, 10
"""Probability that a span ends with any of its words, and the most words of one."""
PLACE_SIZE = 200
"""Numbers in the vector of a place in a span (the authors' program)."""


def span_bounds(chosen: Tensor) -> tuple[Tensor, Tensor]:
    """For each place (B, T) in a run of true ones, the places in front of the run and behind it.
    Numbers at other places say nothing."""
    places = torch.arange(chosen.shape[1], device=chosen.device)
    before = torch.where(chosen, 0, places).cummax(1).values
    behind = torch.where(chosen, chosen.shape[1], places).flip(1).cummin(1).values.flip(1)
    return before, behind


class SpanBoundary(nn.Module):
    """Natural log-probabilities of the pieces of a span by the states in front of it and behind it
    and a vector of the place in it: two layers with GELU and a norm, then the encoder's table of
    pieces as the output layer, with a bias for each."""

    def __init__(self, encoder: Any):
        super().__init__()
        pieces, embedded = encoder.table.weight.shape
        self.places = nn.Embedding(encoder.view.max_length, PLACE_SIZE)
        self.layers = nn.Sequential(
            nn.Linear(2 * encoder.size + PLACE_SIZE, encoder.size),
            nn.GELU(),
            nn.LayerNorm(encoder.size, encoder.eps),
            nn.Linear(encoder.size, embedded),
            nn.GELU(),
            nn.LayerNorm(embedded, encoder.eps),
        )
        self.bias = nn.Parameter(torch.zeros(pieces))
        encoder.begin(self, 0.02)

    def forward(self, encoder: Any, states: Tensor, chosen: Tensor, ids: Tensor) -> Tensor:
        """Those (N,) of the pieces ``ids`` (B, T) where ``chosen`` is true, by states (B, T,
        size)."""
        rows, places = chosen.nonzero().T
        before, behind = (bounds[rows, places] for bounds in span_bounds(chosen))
        read = [states[rows, before], states[rows, behind], self.places(places - before - 1)]
        scores = F.linear(self.layers(torch.cat(read, -1)), encoder.table.weight, self.bias)
        return -F.cross_entropy(scores, ids[rows, places], reduction="none")


class MaskedSpans(MaskedPieces):
    """Spans of whole words are masked: each of them, or of those that touch, is read as masks, as
    any pieces, or as it is. Its pieces are told twice, by their own states and by those beside the
    span; the second loss is of training alone.
    """

    unit = "pieces of masked spans"

    def __init__(self, encoder: Any):
        super().__init__(encoder)
        self.boundary = SpanBoundary(encoder)

    @staticmethod
    def law() -> Tensor:
        """Probabilities (10,) of the lengths of spans in words: geometric, cut at the longest."""
        shares = (1 - ENDS) ** torch.arange(LONGEST)
        return shares / shares.sum()

    @classmethod
    def chosen(cls, pieces: SubwordBatch, view: Subwords, noise: Noise) -> Tensor:
        return in_spans(pieces, view, noise, cls.law(), cls.share)

    @staticmethod
    def shared(how: Tensor, chosen: Tensor) -> Tensor:
        """The same, one for each span: that of the place in front of it."""
        return how.gather(1, span_bounds(chosen)[0])

    def forward(self, encoder: Any, pieces: SubwordBatch, noise: Noise) -> Foretold:
        chosen = self.chosen(pieces, encoder.view, noise)
        states = encoder(pieces._replace(ids=self.hidden(pieces.ids, chosen, encoder.view, noise)))
        if self.training:
            logs = self.boundary(encoder, states, chosen, pieces.ids)
            add_loss("boundary", -logs.sum() / max(1, len(logs)))
        return Foretold.at(self.scores(encoder, states[chosen], pieces.ids[chosen]), chosen)
