"""Views: what an architecture reads. Each is fitted on the training texts only and encodes a text
once, into flat arrays."""

from harness.views.base import Text, View, words_of

__all__ = ["Text", "View", "words_of"]
