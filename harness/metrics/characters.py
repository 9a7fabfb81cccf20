"""Characters of a text, whatever its words are."""

from __future__ import annotations


def characters_of(text: str | list[str]) -> int:
    """Number of characters, with a blank between two words of a text that comes in words."""
    return len(text if isinstance(text, str) else " ".join(text))
