"""The older place of ``take`` and ``pad_nested`` (:mod:`harness.ragged`), for plugins."""

from harness.ragged import pad_nested, take

__all__ = ["pad_nested", "take"]
