"""Batches of texts as a view of pieces or words reads them, and what is drawn for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from harness.layers.noise import Noise
from harness.views.base import View


def batch(view: View, *texts: str) -> Any:
    """The texts as one batch of the view."""
    return view.collate(view.encode(list(texts)), np.arange(len(texts)))


def noise_of(pieces: Any, *key: int, progress: float = 1.0) -> Noise:
    """What is drawn for a batch: as in evaluation, or by the key (seed, number of the pass)."""
    return Noise(pieces.ids, pieces.mask, key, progress)


def packed(view: Any, *texts: str) -> Any:
    """The texts one behind another in one batch, as training reads them."""
    columns = view.packed(view.encode(list(texts)))
    return view.collate(columns, np.arange(len(columns["ids"])))


def sentences_of(text: str) -> list[list[str]]:
    """The words of each sentence of a text that has spaces between words and marks, by a loop."""
    found: list[list[str]] = [[]]
    for word in text.split():
        if found[-1] and found[-1][-1] in ".!?" and word not in ".!?":
            found.append([])
        found[-1].append(word)
    return found


def told_of(text: str, steps: Sequence[int]) -> list[tuple[int, list[str]]]:
    """For each step, the number of each sentence of a text with the words that it tells, those of
    the sentence so many behind it; one that is alone tells an empty sentence."""
    every = sentences_of(text)
    found = []
    for step in steps:
        for number in range(len(every)):
            if 0 <= number + step < len(every):
                found.append((number, every[number + step]))
            elif len(every) == 1:
                found.append((number, []))
    return found


def log_shares_by_hand(view: Any, pieces: Any) -> torch.Tensor:
    """Natural logarithm of each piece's share (V,) of those of the texts, every one counted once
    more, and the mark of the beginning not counted at all."""
    counts = torch.ones(view.width).index_add(0, pieces.ids[pieces.mask], torch.ones(int(pieces.mask.sum())))
    counts[view.start] = 1
    return (counts / counts.sum()).log()
