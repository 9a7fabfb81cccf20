"""Mentions in a text: a pronoun, and two names that it may stand for, each between marks that are
words of their own."""

from __future__ import annotations

from collections.abc import Sequence

PRONOUN = ("[p", "p]")
"""The marks before and behind the pronoun."""
CANDIDATES = {"A": ("[a", "a]"), "B": ("[b", "b]")}
"""The marks around each of the names, by the label of a row in which it is meant."""
NEITHER = "neither"
"""The label of a row in which neither of them is."""


def pronoun_of(text: str | Sequence[str]) -> str:
    """The word behind the first mark of a pronoun; empty for a text without one.

    >>> pronoun_of(["[a", "Ann", "a]", "left", "when", "[p", "she", "p]", "was", "ill"])
    'she'
    """
    words = text.split() if isinstance(text, str) else text
    marks = [place for place, word in enumerate(words[:-1]) if word == PRONOUN[0]]
    return words[marks[0] + 1] if marks else ""
