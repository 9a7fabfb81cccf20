"""Masked pieces of texts in one language and of texts with their translations (Lample and Conneau
2019: 3.3 and 3.4)."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.objectives.masked_pieces import MaskedPieces, content, share_of
from harness.layers.noise import Noise
from harness.views.languages import TwoLanguages
from harness.views.subwords import SubwordBatch


class TableScores(nn.Module):
    """Natural log-probabilities of pieces: the encoder's table of pieces is the output layer, with
    a bias for each."""

    def __init__(self, encoder: Any):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(len(encoder.table.weight)))

    def forward(self, encoder: Any, states: Tensor, pieces: Tensor) -> Tensor:
        """Those (N,) of ``pieces`` (N,) by states (N, size)."""
        return -F.cross_entropy(F.linear(states, encoder.table.weight, self.bias), pieces, reduction="none")


class MaskedLanguages(MaskedPieces):
    """The masked language model on texts in one language, which fill whole sequences, and the
    translation language model on those in two, of which both sides have masks.

    Pieces are drawn one after another, each with a probability proportional to 1 / sqrt(count)
    among those that are left: whichever has the shortest wait, exponential with that rate, comes
    first.
    """

    unit = "masked pieces, more of the rare ones,"

    def __init__(self, encoder: Any):
        super().__init__(encoder)
        self.scores = TableScores(encoder)  # type: ignore[assignment]

    @classmethod
    def chosen(cls, pieces: SubwordBatch, view: TwoLanguages, noise: Noise) -> Tensor:  # type: ignore[override]
        counts = torch.from_numpy(view.counts).to(pieces.ids.device).clamp(min=1)
        waits = -torch.log1p(-noise.uniform(pieces.ids.shape[1])) * counts[pieces.ids].sqrt()
        return share_of(content(pieces, view), cls.share, waits / (1 + waits))
