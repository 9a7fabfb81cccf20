"""Padded batches with large numbers at padding, and their comparison with each text alone.

Batches are compared text by text with oracles, which see one text without its padding
(:mod:`tests.support.oracles`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace

import numpy as np
import torch
from torch import Tensor

from harness.problems.base import Batch
from harness.views.sentences import SentenceBatch
from harness.views.words import UNKNOWN, WordBatch
from tests.support.same import assert_same

POISON = 50.0
"""Every number at padding: so large that it shows wherever it counts."""


def mask_of(lengths: Sequence[int]) -> Tensor:
    """True (B, T) at the real positions of texts of these lengths."""
    return torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]


def poisoned(vectors: Tensor, mask: Tensor) -> Tensor:
    """The vectors (B, T, D) with large numbers at padding."""
    return vectors.masked_fill(~mask[..., None], POISON)


def sentences(*words: int) -> tuple[Batch, SimpleNamespace]:
    """What a tagger's head is told of sentences with so many words: their batch and their split."""
    return Batch({}, None, np.arange(len(words)), sum(words)), SimpleNamespace(targets={"words": np.array(words)})


def texts_of(vectors: Tensor, lengths: Sequence[int] | None = None) -> WordBatch:
    """Texts with the given vectors (B, T, D), large numbers at padding; all words are unknown.

    Without ``lengths`` all texts have T words. The batch's vectors want gradients, which
    :func:`tests.support.same.assert_same` compares.
    """
    mask = mask_of(lengths or [vectors.shape[1]] * len(vectors))
    return WordBatch(UNKNOWN * mask, mask, mask.sum(1), poisoned(vectors, mask).requires_grad_())


def random_texts(lengths: Sequence[int], seed: int, width: int, words: int = 1) -> WordBatch:
    """Texts of these lengths, each position with a standard normal vector of its own.

    All words are unknown (id 1), and spelt in ``words`` different ways, 1 to ``words`` (0 at
    padding); the vectors do not depend on that.
    """
    generator = torch.Generator().manual_seed(seed)
    mask = mask_of(lengths)
    spellings = torch.randint(1, words + 1, mask.shape, generator=generator) * mask if words > 1 else mask.long()
    return texts_of(torch.randn(*mask.shape, width, generator=generator), lengths)._replace(spellings=spellings)


def random_subgraphs(*sizes: Sequence[int], around: int, width: int) -> WordBatch:
    """Texts of sub-graphs one behind another, each with room for ``around`` words.

    ``sizes`` holds the words of each sub-graph of a text. Large numbers stand at padding, and the
    vectors want gradients.
    """
    mask = torch.zeros(len(sizes), max(map(len, sizes)), around, dtype=torch.bool)
    for text, each in enumerate(sizes):
        for root, words in enumerate(each):
            mask[text, root, :words] = True
    mask = mask.flatten(1)
    vectors = torch.randn(*mask.shape, width, generator=torch.Generator().manual_seed(0))
    lengths = torch.tensor([around * len(each) for each in sizes])
    return WordBatch(UNKNOWN * mask, mask, lengths, poisoned(vectors, mask).requires_grad_())


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
    vectors = torch.full((*mask.shape, width), POISON)
    for d, document in enumerate(sentences):
        for s, sentence in enumerate(document):
            vectors[d, s, : len(sentence)], mask[d, s, : len(sentence)] = sentence, True
    return SentenceBatch(mask.long(), mask, mask.any(-1), vectors), sentences


def rows_alone(*texts: WordBatch | tuple[Tensor, Tensor]) -> list[tuple[Tensor, ...]]:
    """The vectors (n, D) of each text without padding; of several batches, those of each row
    together.

    A batch of texts may be given as vectors (B, T, D) and mask (B, T).
    """
    pairs = [(text.vectors, text.mask) if isinstance(text, WordBatch) else text for text in texts]
    rows = [[row[real] for row, real in zip(vectors, mask, strict=True)] for vectors, mask in pairs]
    return list(zip(*rows, strict=True))


def assert_each_alone(
    result: Tensor,
    oracle: Callable[..., Tensor],
    *texts: WordBatch | tuple[Tensor, Tensor],
    states: bool = False,
    **tolerance: float,
) -> None:
    """Assert that the model's ``result`` for a padded batch is, for each text (or for each pair, of
    two batches), what the oracle makes of its vectors alone.

    ``result`` holds a vector or a score for each text; with ``states`` it holds a vector for each
    position, of which those at padding are not compared. Gradients are compared, too: those of the
    oracle come from its text alone (:func:`tests.support.same.assert_same`, as ``tolerance``).
    """
    rows = rows_alone(*texts)
    assert len(result) == len(rows)
    expected = [oracle(*row) for row in rows]
    found = [result[number, : len(row[0])] if states else result[number] for number, row in enumerate(rows)]
    for value, text in zip(found, expected, strict=True):
        torch.testing.assert_close(value, text, **tolerance)
    ours, theirs = (torch.cat([value.flatten() for value in values]) for values in (found, expected))
    assert theirs.std() > 0, "equal numbers everywhere prove nothing"
    assert_same(ours, theirs, **tolerance)
