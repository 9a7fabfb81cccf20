"""The next piece: each piece of a text is told from those before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from harness.layers.noise import Noise
from harness.problems.language_model import Surprise, known_by_heart
from harness.problems.text_objective import Foretold, TextObjective, batches, log_shares, summed
from harness.task import Row
from harness.views.subwords import SubwordBatch, Subwords


def next_pieces(encoder: Any, states: Tensor, pieces: SubwordBatch) -> Foretold:
    """Log-probabilities of all pieces but the first, which begins every text, by the states (B, T,
    size) at those before them: the encoder's table of pieces is the output layer."""
    asked = pieces.mask[:, 1:]
    scores = F.linear(states[:, :-1][asked], encoder.table.weight)
    return Foretold.at(-F.cross_entropy(scores, pieces.ids[:, 1:][asked], reduction="none"), asked)


class NextPiece(TextObjective):
    """The probability of a text, piece by piece, by an encoder that sees at each place no piece
    behind it.

    The separator that ends a sequence is one of its pieces, and so it is where the text goes on:
    behind a stretch of packed texts, and where a text is cut.
    """

    unit = "pieces"

    def forward(self, encoder: Any, pieces: SubwordBatch, noise: Noise) -> Foretold:
        return next_pieces(encoder, encoder(pieces), pieces)

    @classmethod
    def floor(cls, view: Subwords, train: Sequence[Row], rows: Sequence[Row]) -> list[Surprise]:
        """Each piece by its share of the pieces of the training texts."""
        logs, found = log_shares(view, train), []
        for pieces in batches(view, rows):
            asked = pieces.mask[:, 1:]
            found += summed(Foretold.at(logs[pieces.ids[:, 1:][asked]], asked), len(asked))
        return found

    @classmethod
    def by_heart(cls, view: Subwords, rows: Sequence[Row]) -> list[Surprise]:
        """Nobody knows which text begins, and who knows some of its pieces knows the next one."""
        ids = [pieces.ids[row, 1:length] for pieces in batches(view, rows) for row, length in enumerate(pieces.lengths)]
        return known_by_heart([[*map(str, text.tolist())] for text in ids])
