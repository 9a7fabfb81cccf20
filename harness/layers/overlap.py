"""Words that two texts share, compared by their letters, so that an unknown word equals itself and
no other."""

from __future__ import annotations

from typing import Any, NamedTuple

from torch import Tensor


class _Words(NamedTuple):
    """The words of B texts, T at most: ``spellings`` (B, T) and ``mask`` (B, T)."""

    spellings: Tensor
    mask: Tensor


def _in_a_row(text: Any) -> _Words:
    """The words of a text, all sentences together."""
    return _Words(text.spellings.flatten(1), text.mask.flatten(1))


def same_words(first: Any, second: Any) -> Tensor:
    """True (B, T, U) where word t of the first text is word u of the second; padding is no word."""
    equal = first.spellings[:, :, None] == second.spellings[:, None]
    return equal & first.mask[:, :, None] & second.mask[:, None]


def shared(first: Any, second: Any) -> Tensor:
    """True at the words of the first text that the second also has, in the shape of the first's
    mask: (B, T), or (B, S, T) for a text in sentences."""
    one, other = _in_a_row(first), _in_a_row(second)
    return same_words(one, other).any(2).view_as(first.mask)
