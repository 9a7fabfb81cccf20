"""Words as a parent numbers them: whoever reads with its vectors gets those of these words."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torch import nn

from architectures.blocks.parents_words import ParentsWords
from harness.views.words import spelling


class Source(ParentsWords, nn.Module):
    """One that only looks words up."""


def test_words_are_found_by_their_spelling_and_all_others_are_unknown():
    """Also those whose spelling is behind and before all that the parent knows."""
    words = sorted(["tide", "boat", "moon", "sail"], key=spelling)
    source = Source()
    source.know({word: number for number, word in enumerate(words[1:3], start=5)}, 1)
    spellings = torch.tensor([[spelling(word) for word in words], [spelling(word) for word in words[::-1]]])
    assert source.found(SimpleNamespace(spellings=spellings)).tolist() == [[1, 5, 6, 1], [1, 6, 5, 1]]
