"""Permuted pieces: some pieces of a text are told one after another in a random order, each from
those that are given and those told before it (Yang et al. 2019: 2.2 and 2.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.objectives.masked_pieces import by_shares
from architectures.blocks.objectives.word_spans import in_spans
from harness.layers.noise import Noise
from harness.problems.language_model import Surprise
from harness.problems.text_objective import Foretold, TextObjective
from harness.task import Row
from harness.views.subwords import SubwordBatch, Subwords

LONGEST = 5
"""Words of the longest span that is asked for; one of n words has a probability proportional to 1 /
n (the authors' program)."""


def visible(asked: Tensor, numbers: Tensor) -> Tensor:
    """True (B, T, T) where the piece at the second place is known when the one at the first is
    told: it is not ``asked`` (B, T), or is asked too, and its number is lower.

    ``numbers`` (B, T) between 0 and 1 give the order; a piece that is not asked comes before all
    that are.
    """
    turn = numbers.masked_fill(~asked, -1)
    return ~asked[:, None] | (turn[:, None] < turn[:, :, None])


class PermutedPieces(TextObjective):
    """A sixth of the pieces, in spans of whole words, is told in a random order by a stream of
    states that begins with one learnt vector everywhere: the state of a place knows the place and
    not its piece. The encoder's table of pieces is the output layer, with a bias for each."""

    unit = "pieces of spans in a random order"
    share = 1 / 6

    def __init__(self, encoder: Any):
        super().__init__(encoder)
        pieces, size = encoder.table.weight.shape
        self.query = nn.Parameter(torch.empty(size).normal_(std=0.02))
        self.bias = nn.Parameter(torch.zeros(pieces))

    @classmethod
    def chosen(cls, pieces: SubwordBatch, view: Subwords, noise: Noise) -> Tensor:
        """True (B, T) at the pieces that are asked for."""
        law = 1 / torch.arange(1.0, LONGEST + 1)
        return in_spans(pieces, view, noise, law / law.sum(), cls.share)

    def forward(self, encoder: Any, pieces: SubwordBatch, noise: Noise) -> Foretold:
        asked = self.chosen(pieces, encoder.view, noise)
        known = visible(asked, noise.uniform(asked.shape[1]))
        states = encoder.told(pieces, asked, known, self.query)
        scores = F.linear(states, encoder.table.weight, self.bias)
        return Foretold.at(-F.cross_entropy(scores, pieces.ids[asked], reduction="none"), asked)

    @classmethod
    def floor(cls, view: Subwords, train: Sequence[Row], rows: Sequence[Row]) -> list[Surprise]:
        """Each asked piece by its share of the pieces of the training texts."""
        return by_shares(cls.chosen, view, train, rows)
