"""Stories as facts: sentences that come apart already, of which the newest are kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from harness.ragged import Columns, Ragged, mask_of, pad_nested
from harness.views.base import Text, words_of
from harness.views.words import Vocabulary, VocabularyView


class FactBatch(NamedTuple):
    """Facts of B stories: ``ids`` (B, S, T) of their words, ``mask`` (B, S, T) true at words,
    ``fact_mask`` (B, S) true at facts."""

    ids: Tensor
    mask: Tensor
    fact_mask: Tensor


@dataclass
class Facts(VocabularyView):
    """The newest ``most`` facts of a story, or its question as a story of one fact; lower-cased
    words, rare ones as in Words.

    A memory network has several word tables of its own, so the batch holds no vectors.
    """

    most: int = 50
    max_words: int = 60
    min_count: int = 2
    embeds: ClassVar[bool] = False

    def read(self, facts: Sequence[Text]) -> list[list[str]]:
        """The words of each fact that is kept; a story without facts has one of one empty word."""
        return [
            [word.lower() for word in words_of(fact)[: self.max_words]] or [""] for fact in facts[-self.most :]
        ] or [[""]]

    def fit(self, texts: Sequence[Sequence[Text]]) -> None:
        self.vocabulary = Vocabulary.of(
            (word for story in texts for fact in self.read(story) for word in fact), self.min_count
        )

    def encode(self, texts: Sequence[Sequence[Text]]) -> Columns:
        stories = [self.read(story) for story in texts]
        ids = Ragged.of(self.vocabulary.ids(word for fact in story for word in fact) for story in stories)
        return {"ids": ids, "fact_lengths": Ragged.of([len(fact) for fact in story] for story in stories)}

    def collate(self, columns: Columns, rows: np.ndarray) -> FactBatch:
        ids, mask, facts = pad_nested(columns["ids"], columns["fact_lengths"], rows)
        return FactBatch(torch.from_numpy(ids).long(), torch.from_numpy(mask), mask_of(facts, ids.shape[1]))
