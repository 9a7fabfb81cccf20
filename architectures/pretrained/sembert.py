"""SemBERT: vectors of words by BERT, and beside them those of labels that a tagger gives to
words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from architectures.blocks.bert_states import BERTStates
from architectures.blocks.recurrent import Recurrent
from harness.errors import ModelError
from harness.kinds import Parent
from harness.ragged import Columns, Ragged
from harness.registry import Recipe, register
from harness.views.base import Text, View, words_of
from harness.views.subwords import SubwordBatch, Subwords, Windows


class LabelledPieces(NamedTuple):
    """A :class:`~harness.views.subwords.SubwordBatch`, with the number of each piece's word in its
    sequence, ``words`` (B, T), and of that word's label, ``labels`` (B, T): 0 for none. [CLS] and
    each [SEP] are words."""

    ids: Tensor
    mask: Tensor
    segments: Tensor
    lengths: Tensor
    firsts: Tensor = torch.empty(0)
    word_mask: Tensor = torch.empty(0)
    windows: Windows | None = None
    marks: Tensor = torch.empty(0)
    words: Tensor = torch.empty(0)
    labels: Tensor = torch.empty(0)


@dataclass
class LabelledSubwords(Subwords):
    """Word pieces, and the label that a kept tagger gives to their words; without one, none."""

    tagger = None

    def encode(self, texts: Sequence[Text]) -> Columns:
        words = [words_of(text) or [""] for text in texts]
        columns: Any = super().encode(words)
        labels = self.labels(words)
        counts = [np.diff([*begins, len(ids)]) for begins, ids in zip(columns["firsts"], columns["ids"], strict=True)]
        begins = [np.concatenate([np.eye(1, n, dtype=np.int64)[0] for n in each]) for each in counts]
        spread = [np.repeat(own, each) for own, each in zip(labels, counts, strict=True)]
        return {"ids": columns["ids"], "begins": Ragged.of(begins), "labels": Ragged.of(spread)}

    def labels(self, texts: Sequence[list[str]]) -> list[list[int]]:
        """The number of each word's label, from 1."""
        if self.tagger is None:
            return [[0] * len(words) for words in texts]
        numbers = {name: number for number, name in enumerate(self.tagger.target.labels, 1)}
        rows = [{"id": str(number), "text": words} for number, words in enumerate(texts)]
        return [[numbers[tag] for tag in answer["prediction"]] for answer in self.tagger.answers(rows)]

    def collate(self, columns: Columns, rows: np.ndarray) -> LabelledPieces:  # type: ignore[override]
        return self._labelled(lambda name: super(LabelledSubwords, self).collate({"ids": columns[name]}, rows))

    def collate_pair(  # type: ignore[override]
        self, first: Columns, second: Columns, rows: np.ndarray, cut: Literal["longer", "second"] = "longer"
    ) -> LabelledPieces:
        def joined(name: str) -> SubwordBatch:
            return super(LabelledSubwords, self).collate_pair({"ids": first[name]}, {"ids": second[name]}, rows, cut)

        return self._labelled(joined)
