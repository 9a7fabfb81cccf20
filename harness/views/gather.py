"""Ragged rows joined or padded: an older place of :mod:`harness.ragged`, which plugins may import."""

from harness.ragged import pad_nested, take

__all__ = ["pad_nested", "take"]
