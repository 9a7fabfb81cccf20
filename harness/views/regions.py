"""Texts as regions of a few words each, every region one sparse vector over the vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from harness.ragged import Columns, Ragged, mask_of
from harness.views.base import Text, words_of
from harness.views.words import Vocabulary, VocabularyView


class RegionBatch(NamedTuple):
    """Regions of B texts, R at most: ``ones`` (B, R, P) the places of the ones in each region's
    vector, 0 where there are fewer than P, ``mask`` (B, R) true at regions, ``lengths`` (B,) their
    number."""

    ones: Tensor
    mask: Tensor
    lengths: Tensor


@dataclass
class Regions(VocabularyView):
    """Regions of ``size`` lower-cased words as one-hot vectors (Johnson & Zhang 2015), of which
    only the places of the ones are kept.

    A region is the one-hot vectors of its words, one behind the other, ``size`` times as long as
    the vocabulary; as a ``bag`` it is as long as the vocabulary, with a one for each distinct word.
    Place 0 is left free. Known are the ``most`` commonest words of the training texts; of others
    there is no one. Regions begin ``stride`` words apart, the first with the text's first word at
    its end, the last with the last word at its beginning or, where the stride passes over that, as
    few words before it as it can be. Those without a known word are left out unless ``empty``, bags
    also where they are the same as the one before. A text has at least one region, and is cut after
    ``max_length`` words.
    """

    size: int = 3
    bag: bool = False
    stride: int = 1
    empty: bool = False
    most: int = 30_000
    max_length: int = 400

    @property
    def width(self) -> int:
        return 1 + len(self.vocabulary.words) * (1 if self.bag else self.size)

    def read(self, text: Text) -> list[str]:
        """The words of a text as this view sees them."""
        return [word.lower() for word in words_of(text)[: self.max_length]]

    def cuts(self, text: Text) -> bool:
        return len(words_of(text)) > self.max_length

    def fit(self, texts: Sequence[Text]) -> None:
        found = Vocabulary.of((word for text in texts for word in self.read(text)), min_count=1)
        self.vocabulary = Vocabulary(found.words[: self.most], found.counts[: self.most])

    def regions(self, words: np.ndarray) -> np.ndarray:
        """Places of the ones (R, ``size``) in the regions of a text whose words are numbered from 1
        (T,), 0 being unknown."""
        framed = np.pad(words, self.size - 1) if len(words) else np.zeros(self.size, words.dtype)
        found = np.lib.stride_tricks.sliding_window_view(framed, self.size)[:: self.stride]
        if self.bag:
            found = np.sort(found)
            found[:, 1:][found[:, 1:] == found[:, :-1]] = 0
            found = np.sort(found)
            found = found[np.append(True, (found[1:] != found[:-1]).any(1))]
        else:
            found = np.where(found > 0, found + len(self.vocabulary.words) * np.arange(self.size), 0)
        known = found[found.any(1)]
        return found if self.empty else known if len(known) else found[:1]

    def encode(self, texts: Sequence[Text]) -> Columns:
        ids = (np.array(self.vocabulary.ids(self.read(text)), dtype=np.int32) for text in texts)
        return {"ids": Ragged.of(self.regions(np.maximum(numbers - 1, 0)) for numbers in ids)}

    def collate(self, columns: Columns, rows: np.ndarray) -> RegionBatch:
        flat = columns["ids"]
        assert isinstance(flat, Ragged)
        ones, lengths = flat.pad(rows)
        return RegionBatch(torch.from_numpy(ones).long(), mask_of(lengths, ones.shape[1]), torch.from_numpy(lengths))
