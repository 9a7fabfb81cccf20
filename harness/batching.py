"""Ragged columns: an older place of :mod:`harness.ragged`, from which plugins may import."""

from harness.ragged import Columns, Ragged, mask_of

__all__ = ["Columns", "Ragged", "mask_of"]
