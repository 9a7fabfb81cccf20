"""Copying out of the source: numbers and probabilities of a vocabulary that the source extends
(:class:`harness.kinds.CopyingGenerator`)."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

UNKNOWN = 3
"""The symbol as which a decoder reads whatever is in the source alone."""
LEAST = 1e-10
"""Added to probabilities, so that what cannot be written has a logarithm too."""


def as_symbols(numbers: Tensor, symbols: int) -> Tensor:
    """Numbers of the extended vocabulary as a table of ``symbols`` vectors has them."""
    return numbers.masked_fill(numbers >= symbols, UNKNOWN)


def joined(generated: Tensor, copied: Tensor, source: Tensor) -> Tensor:
    """Log-probabilities (B, symbols + S) of writing each symbol and each word of the source.

    ``generated`` (B, symbols) and ``copied`` (B, S) are probabilities, together 1, and ``source``
    (B, S) the numbers of the words that would be copied: those of equal words are added.
    """
    extended = F.pad(generated, (0, copied.shape[1]))
    return (extended.scatter_add(1, source, copied) + LEAST).log()
