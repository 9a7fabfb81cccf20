"""Numbers that say how a passage's word stands to the question and to its passage."""

from __future__ import annotations

import torch
from torch import Tensor

from harness.layers.overlap import same_words, shared
from harness.views.words import WordBatch


def match_features(passage: WordBatch, question: WordBatch) -> Tensor:
    """1 where the question has a passage's word too, and the word's frequency, its share of the
    passage's words: (B, T, 2) (Chen et al. 2017)."""
    frequency = same_words(passage, passage).sum(2) / passage.lengths[:, None]
    return torch.stack([shared(passage, question).to(frequency.dtype), frequency], dim=-1)
