"""Spans of whole words that are masked together."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from architectures.blocks.objectives.masked_pieces import content
from harness.layers.noise import Noise
from harness.views.subwords import SubwordBatch, Subwords


def beginnings(pieces: SubwordBatch, view: Subwords) -> Tensor:
    """True (B, T) at the pieces with which words begin; a text that begins inside a word begins
    with a word."""
    allowed = content(pieces, view)
    continues = torch.from_numpy(view.continues).to(pieces.ids.device)[pieces.ids]
    return allowed & ~(continues & F.pad(allowed[:, :-1], (1, 0)))


def lengths_by(law: Tensor, numbers: Tensor) -> Tensor:
    """Lengths from 1 on, with the probabilities (N,) of a law, for ``numbers`` between 0 and 1."""
    return 1 + torch.bucketize(numbers, law.cumsum(0)[:-1].to(numbers), right=True)


def in_spans(
    pieces: SubwordBatch, view: Subwords, noise: Noise, law: Tensor, share: float, whole: bool = True
) -> Tensor:
    """True (B, T) at a share of the pieces of each text, at one at least, in spans of words, or, if
    not ``whole``, of pieces.

    A span begins at any word, and its number of words has the probabilities (N,) of ``law``; it
    does not go beyond the text. Spans are drawn one after another until the share is reached, and
    may overlap. The last one is cut behind the word with which it is reached, so that words are
    masked whole.
    """
    allowed = content(pieces, view)
    begins = beginnings(pieces, view) if whole else allowed
    most = pieces.ids.shape[1]
    words, texts = begins.cumsum(1), (~allowed).cumsum(1)
    order = noise.uniform(most).argsort(stable=True, dim=1).argsort(1)
    beyond = words + lengths_by(law, noise.uniform(most))
    covers = (  # (B, beginnings, places)
        begins[:, :, None]
        & (texts[:, :, None] == texts[:, None])
        & (words[:, :, None] <= words[:, None])
        & (words[:, None] < beyond[:, :, None])
    )
    earliest = torch.where(covers, order[:, :, None], most).amin(1)
    turns = (earliest * (most + 1) + words).masked_fill(~allowed, (most + 1) ** 2)
    count = (share * allowed.sum(1, keepdim=True)).round().long().clamp(min=1)
    return allowed & (turns <= turns.sort(1).values.gather(1, count - 1))
