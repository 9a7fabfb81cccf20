"""Masked pieces: some pieces of a text are hidden, and told from the others (Devlin et al. 2018:
3.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.spans import ENDS
from harness.layers.noise import Noise
from harness.problems.language_model import Surprise
from harness.problems.text_objective import Foretold, TextObjective, batches, log_shares, summed
from harness.task import Row
from harness.views.subwords import SubwordBatch, Subwords


def content(pieces: SubwordBatch, view: Subwords) -> Tensor:
    """True (B, T) at the pieces of texts: not at padding, nor at what marks where texts begin and
    end."""
    return pieces.mask & (pieces.ids != view.start) & (pieces.ids != view.separator)


def sentence_ends(view: Subwords) -> Tensor:
    """The numbers of the pieces that end a sentence, of those that a vocabulary has."""
    known = (view.tokenizer.token_to_id(mark) for mark in sorted(ENDS))
    return torch.tensor([number for number in known if number is not None], dtype=torch.long)


def share_of(allowed: Tensor, share: float, numbers: Tensor) -> Tensor:
    """True (B, T) at a share of the ``allowed`` places of each text, at one at least: those with
    the lowest of the ``numbers`` (B, T)."""
    count = (share * allowed.sum(1, keepdim=True)).round().clamp(min=1)
    ranks = numbers.masked_fill(~allowed, 2).argsort(1).argsort(1)
    return allowed & (ranks < count)


Choice = Callable[[SubwordBatch, Subwords, Noise], Tensor]


def by_shares(chosen: Choice, view: Subwords, train: Sequence[Row], rows: Sequence[Row]) -> list[Surprise]:
    """Predictions for the rows, whose ``chosen`` pieces (B, T) are told by their shares of the
    pieces of the training texts."""
    logs, found = log_shares(view, train), []
    for pieces in batches(view, rows):
        asked = chosen(pieces, view, Noise(pieces.ids, pieces.mask))
        found += summed(Foretold.at(logs[pieces.ids[asked]], asked), len(asked))
    return found


class WordScores(nn.Module):
    """Natural log-probabilities of pieces: a dense layer, GELU and a norm, then the encoder's table
    of pieces as the output layer, with a bias for each (V,). States have ``size`` numbers, by
    default as many as the encoder's."""

    def __init__(self, encoder: Any, size: int | None = None):
        super().__init__()
        pieces, embedded = encoder.table.weight.shape
        self.transform = nn.Sequential(
            nn.Linear(size or encoder.size, embedded), nn.GELU(), nn.LayerNorm(embedded, encoder.eps)
        )
        self.bias = nn.Parameter(torch.zeros(pieces))

    def scores(self, encoder: Any, states: Tensor) -> Tensor:
        """Scores (N, V) of all pieces by states (N, size), before the softmax."""
        return F.linear(self.transform(states), encoder.table.weight, self.bias)

    def forward(self, encoder: Any, states: Tensor, pieces: Tensor) -> Tensor:
        """Those (N,) of ``pieces`` (N,) by states (N, size)."""
        return -F.cross_entropy(self.scores(encoder, states), pieces, reduction="none")


class MaskedPieces(TextObjective):
    """A share of the pieces is chosen; of these 80 % are read as the mask, 10 % as any piece of the
    vocabulary, and 10 % as they are, and the model tells which they were.

    Scores are computed at the chosen places alone.
    """

    unit = "masked pieces"
    share = 0.15

    def __init__(self, encoder: Any):
        super().__init__(encoder)
        self.scores = WordScores(encoder)

    @classmethod
    def chosen(cls, pieces: SubwordBatch, view: Subwords, noise: Noise) -> Tensor:
        """True (B, T) at the pieces that are asked for."""
        return share_of(content(pieces, view), cls.share, noise.uniform(pieces.ids.shape[1]))

    @staticmethod
    def shared(how: Tensor, chosen: Tensor) -> Tensor:
        """The numbers (B, T) by which pieces are masked, changed or left: one for each of them."""
        return how

    @classmethod
    def hidden(cls, ids: Tensor, chosen: Tensor, view: Subwords, noise: Noise) -> Tensor:
        """The pieces (B, T) as the model reads them."""
        how, others = noise.uniform(ids.shape[1]), noise.uniform(ids.shape[1])
        how = cls.shared(how, chosen)
        read = torch.where(how < 0.8, torch.full_like(ids, view.mask), (others * view.width).long())
        return torch.where(chosen & (how < 0.9), read, ids)

    def forward(self, encoder: Any, pieces: SubwordBatch, noise: Noise) -> Foretold:
        return self.told(encoder, pieces, noise)[0]

    def told(self, encoder: Any, pieces: SubwordBatch, noise: Noise) -> tuple[Foretold, Tensor]:
        """The chosen pieces, and the states (B, T, size) by which they are told."""
        chosen = self.chosen(pieces, encoder.view, noise)
        states = encoder(pieces._replace(ids=self.hidden(pieces.ids, chosen, encoder.view, noise)))
        return Foretold.at(self.scores(encoder, states[chosen], pieces.ids[chosen]), chosen), states

    @classmethod
    def floor(cls, view: Subwords, train: Sequence[Row], rows: Sequence[Row]) -> list[Surprise]:
        """Each hidden piece by its share of the pieces of the training texts."""
        return by_shares(cls.chosen, view, train, rows)
