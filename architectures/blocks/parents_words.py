"""Words as a parent numbers them, for input sources that it reads them with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor

from harness.kinds import InputSource
from harness.views.words import spelling
from harness.views.words_and_characters import WordCharacterBatch


class ParentsWords(InputSource):
    """A source that looks words up among those that its parent knows, by their spelling, whatever
    the vocabulary of the task."""

    takes = ("inputs",)
    spells: ClassVar[bool] = False

    def know(self, words: Mapping[str, int], unknown: int) -> None:
        """The numbers of the ``words``, and that of all others."""
        numbers = {spelling(word): number for word, number in reversed(words.items())}  # of two, the commoner
        self.unknown = unknown
        self.register_buffer("spellings", torch.tensor(sorted(numbers)))
        self.register_buffer("numbers", torch.tensor([numbers[each] for each in sorted(numbers)]))

    def found(self, words: WordCharacterBatch) -> Tensor:
        """Numbers (B, T) of words."""
        place = torch.searchsorted(self.spellings, words.spellings).clamp(max=len(self.spellings) - 1)
        return torch.where(self.spellings[place] == words.spellings, self.numbers[place], self.unknown)
