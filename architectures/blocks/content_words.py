"""The words of a text that say what it is about."""

from __future__ import annotations

from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from architectures.blocks.ngrams import lower_words
from harness.views.base import Text


def content_words(text: Text) -> list[str]:
    """Words of a text in lower case, without marks and stop words."""
    return [word for word in lower_words(text) if word[:1].isalnum() and word not in ENGLISH_STOP_WORDS]
