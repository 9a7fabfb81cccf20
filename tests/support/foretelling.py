"""Language models read by hand: words with given vectors, in one stretch or in several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from harness.kinds import LanguageModel
from harness.views.words import WordBatch


def words(vectors: Tensor, ids: Tensor | None = None) -> WordBatch:
    """The words before, with these vectors (B, T, D)."""
    mask = torch.ones(vectors.shape[:2], dtype=torch.bool)
    return WordBatch(mask.long() if ids is None else ids, mask, mask.sum(1), vectors)


def in_stretches(model: LanguageModel, read: WordBatch, ends: Sequence[int]) -> tuple[Tensor, Any]:
    """States (B, T, size) of words that are read up to one place after the other, and the state
    behind the last."""
    state, states, begin = model.start(len(read.ids)), [], 0
    for end in ends:
        part = words(read.vectors[:, begin:end], read.ids[:, begin:end])
        found, state = model(part, state)
        states.append(found)
        begin = end
    return torch.cat(states, 1), state
