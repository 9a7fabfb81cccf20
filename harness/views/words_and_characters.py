"""Texts as words, and each word as its characters: what taggers with a character network read."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from harness.ragged import Columns, Ragged, pad_nested
from harness.views.base import Text, View, words_of
from harness.views.words import UNKNOWN, Vocabulary, Words


class WordCharacterBatch(NamedTuple):
    """A :class:`~harness.views.words.WordBatch` with the words' ``characters`` (B, T, C),
    ``character_mask`` (B, T, C) true at them."""

    ids: Tensor
    mask: Tensor
    lengths: Tensor
    vectors: Tensor = torch.empty(0)
    static: Tensor = torch.empty(0)
    spellings: Tensor = torch.empty(0)
    characters: Tensor = torch.empty(0)
    character_mask: Tensor = torch.empty(0)


@dataclass
class WordsAndCharacters(Words):
    """Words as in :class:`Words`, beside the first ``word_length`` characters of each in their
    case; 0 is padding, 1 a new character."""

    word_length: int = 30
    divides: ClassVar[bool] = False

    @property
    def alphabet_size(self) -> int:
        """Number of character ids, padding and the unknown character included."""
        return len(self.characters)

    def _spellings(self, text: Text) -> Iterator[str]:
        return (word[: self.word_length] for word in words_of(text)[: self.max_length] or [""])

    def fit(self, texts: Sequence[Text]) -> None:
        super().fit(texts)
        self.characters = Vocabulary.of(
            (c for text in texts for word in self._spellings(text) for c in word), min_count=1
        )

    def encode(self, texts: Sequence[Text]) -> Columns:
        # An empty word gets the unknown character, so that every real word has one for a network to
        # read.
        spelt = [[self.characters.ids(word) or [UNKNOWN] for word in self._spellings(text)] for text in texts]
        characters = Ragged.of([id for word in words for id in word] for words in spelt)
        word_lengths = Ragged.of([len(word) for word in words] for words in spelt)
        return super().encode(texts) | {"characters": characters, "word_lengths": word_lengths}

    def collate(self, columns: Columns, rows: np.ndarray) -> WordCharacterBatch:  # type: ignore[override]
        words = super().collate(columns, rows)
        characters, mask, _ = pad_nested(columns["characters"], columns["word_lengths"], rows)
        return WordCharacterBatch(*words, torch.from_numpy(characters).long(), torch.from_numpy(mask))

    def state(self) -> dict[str, Any]:
        return super().state() | {"characters": self.characters.words, "character_counts": self.characters.counts}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self.characters = Vocabulary(state["characters"], state["character_counts"])


def with_characters(view: View | None) -> WordsAndCharacters | None:
    """The view that reads the same words and their characters too; None for one that has no such
    form, since its words are nodes, sentences, pieces or none at all."""
    if isinstance(view, WordsAndCharacters):
        return view
    return WordsAndCharacters(**dataclasses.asdict(view)) if type(view) is Words else None
