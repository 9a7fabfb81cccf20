"""Texts beside those of dev and test of all tasks."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from harness.task import Tier
from harness.views.base import words_of
from tasks.text_mix import guarded


def assert_apart(texts: list[str], tier: Tier, folder: Path | None) -> None:
    """Assert that texts have no 13 words in a row in common with dev or test of any task, and no
    text that is shorter."""
    own = {sequence for text in texts for sequence in sequences(text)}
    assert len(own) > len(texts) and all(own.isdisjoint(sequences(text)) for text in guarded(tier, folder))


def sequences(text: str) -> Iterable[tuple[str, ...]]:
    """All 13 words in a row of a text in lower case; all words of a shorter one."""
    words = [word.lower() for word in words_of(text)]
    return zip(*(words[start:] for start in range(13)), strict=False) if len(words) >= 13 else [tuple(words)]
