"""Word graphs of made texts, and the same graphs counted place by place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import combinations

import numpy as np
import torch
from torch import Tensor

from harness.views.graph import GraphBatch, WordGraphs
from tests.support.batches import poisoned
from tests.support.same import assert_same

TEXTS = ("a b a c d a e", "f", "a b a b", "g a d b c")
"""A word with many neighbours, one with none, two words that stand near each other often."""


def near(words: list[str], reach: int) -> dict[tuple[str, str], int]:
    """Pairs of different words and at how many pairs of places they are near, place by place."""
    counts: Counter = Counter()
    for (i, a), (j, b) in combinations(enumerate(words), 2):
        if j - i <= reach and a != b:
            counts[a, b] += 1
            counts[b, a] += 1
    return dict(counts)


def matrix_of(text: str, reach: int) -> Tensor:
    """Counts (N, N) of a text's distinct words, in the order of their appearance."""
    words = text.split()
    distinct, counts = list(dict.fromkeys(words)), near(words, reach)
    return torch.tensor([[float(counts.get((a, b), 0)) for b in distinct] for a in distinct])


def fitted(view: WordGraphs, *texts: str) -> WordGraphs:
    """The view with the words of these texts (of :data:`TEXTS` if there are none)."""
    view.fit([text.split() for text in texts or TEXTS])
    return view


def graphs_of(view: WordGraphs, *texts: str, width: int) -> GraphBatch:
    """Graphs as a fitted view reads them; each word has a random vector of its own, the same in
    every text, and padding large numbers."""
    batch = view.collate(view.encode([text.split() for text in texts]), np.arange(len(texts)))
    table = torch.randn(view.width, width, generator=torch.Generator().manual_seed(1))
    return batch._replace(vectors=poisoned(table[batch.ids], batch.mask))


def renumbered(batch: GraphBatch) -> GraphBatch:
    """The same graphs with their nodes in the opposite order, padding first."""
    texts, nodes = batch.mask.shape
    other = (torch.arange(texts)[:, None] * nodes + torch.arange(nodes - 1, -1, -1)).flatten()
    flipped = {name: getattr(batch, name).flip(1) for name in ("ids", "mask", "vectors", "spellings")}
    order = other[batch.targets].argsort(stable=True)
    edges = {"sources": other[batch.sources][order], "targets": other[batch.targets][order]}
    pairs = batch.pairs[order] if batch.pairs.numel() else batch.pairs
    return batch._replace(**flipped, **edges, counts=batch.counts[order], pairs=pairs)


def assert_each_alone(
    result: Tensor, oracle: Callable[[Tensor, Tensor], Tensor], batch: GraphBatch, reach: int, *texts: str
) -> None:
    """Assert that each row of ``result`` is what the oracle makes of the vectors (N, D) and the
    counts (N, N) of its text alone."""
    assert len(result) == len(texts) > 1 and result.std() > 0
    for row, text, vectors, mask in zip(result, texts, batch.vectors, batch.mask, strict=True):
        assert_same(row, oracle(vectors[mask], matrix_of(text, reach)))
