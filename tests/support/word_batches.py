"""Batches of random words whose padding holds large numbers, for tests of what a model makes of the
real ones."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from harness.views.sentences import SentenceBatch
from harness.views.words import UNKNOWN, WordBatch

PADDING = 50.0
"""Every number at padding: so large that it shows wherever it counts."""


def random_texts(lengths: Sequence[int], seed: int, width: int, words: int = 1) -> WordBatch:
    """Texts of these lengths, each position with a standard normal vector of its own.

    All words are unknown (id 1), and spelt in ``words`` different ways, 1 to ``words`` (0 at
    padding); the vectors do not depend on that.
    """
    generator = torch.Generator().manual_seed(seed)
    sizes = torch.tensor(lengths)
    mask = torch.arange(max(lengths)) < sizes[:, None]
    spellings = torch.randint(1, words + 1, mask.shape, generator=generator) * mask if words > 1 else mask.long()
    vectors = torch.randn(*mask.shape, width, generator=generator).masked_fill(~mask[..., None], PADDING)
    return WordBatch(UNKNOWN * mask, mask, sizes, vectors, spellings=spellings)


def random_vectors(lengths: Sequence[int], seed: int, width: int) -> tuple[Tensor, Tensor]:
    """Vectors (B, T, width) and mask (B, T) of :func:`random_texts`."""
    texts = random_texts(lengths, seed, width)
    return texts.vectors, texts.mask


def random_documents(
    lengths: Sequence[Sequence[int]], seed: int, width: int
) -> tuple[SentenceBatch, list[list[Tensor]]]:
    """Documents as one batch, and the vectors (words, width) of their sentences one by one;
    ``lengths`` holds words per sentence."""
    generator = torch.Generator().manual_seed(seed)
    sentences = [[torch.randn(words, width, generator=generator) for words in document] for document in lengths]
    mask = torch.zeros(len(lengths), max(map(len, lengths)), max(map(max, lengths)), dtype=torch.bool)
    vectors = torch.full((*mask.shape, width), PADDING)
    for d, document in enumerate(sentences):
        for s, sentence in enumerate(document):
            vectors[d, s, : len(sentence)], mask[d, s, : len(sentence)] = sentence, True
    return SentenceBatch(mask.long(), mask, mask.any(-1), vectors), sentences
