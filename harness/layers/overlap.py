"""Words that two texts share, compared by their letters, so that an unknown word equals itself and
no other."""

from __future__ import annotations

from typing import Any

from torch import Tensor


def same_words(first: Any, second: Any) -> Tensor:
    """True (B, T, U) where word t of the first text is word u of the second; padding is no word."""
    equal = first.spellings[:, :, None] == second.spellings[:, None]
    return equal & first.mask[:, :, None] & second.mask[:, None]


def shared(first: Any, second: Any) -> Tensor:
    """True (B, T) at the words of the first text that the second also has."""
    return same_words(first, second).any(2)
