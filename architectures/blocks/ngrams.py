"""Counts of runs of words, for the classical systems."""

from __future__ import annotations

from typing import Any

from sklearn.feature_extraction.text import CountVectorizer

from harness.views.base import Text, words_of


def lower_words(text: Text) -> list[str]:
    """Words of a text, lower-cased."""
    return [word.lower() for word in words_of(text)]


def ngram_counter(longest: int, **settings: Any) -> CountVectorizer:
    """Counts the runs of 1 to ``longest`` words of a text; one that no fitted text had is
    ignored."""
    return CountVectorizer(
        tokenizer=lower_words, lowercase=False, token_pattern=None, ngram_range=(1, longest), **settings
    )
