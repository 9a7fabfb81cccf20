"""One graph of all words and texts of a corpus (Yao et al. 2019), for systems that answer its texts
(transductive)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse

from harness.ragged import Ragged
from harness.task import Row
from harness.views.base import plain, words_of

WINDOWS_AT_ONCE = 200_000
"""Windows whose pairs are counted together: enough for speed, few enough for memory."""


def count_pairs(texts: Ragged, words: int, window: int) -> tuple[sparse.csr_array, int]:
    """In how many windows two words occur together (words, words), one word on the diagonal; and
    the number of windows.

    A window is a run of ``window`` words of one text; a shorter text is one window.
    """
    lengths = texts.lengths
    windows = np.where(lengths > 0, np.maximum(lengths - window, 0) + 1, 0)
    nth = np.arange(windows.sum()) - np.repeat(windows.cumsum() - windows, windows)
    starts = np.repeat(texts.offsets[:-1], windows) + nth
    ends = np.minimum(starts + window, np.repeat(texts.offsets[1:], windows))
    counts = sparse.csr_array((words, words), dtype=np.int32)
    for begin in range(0, len(starts), WINDOWS_AT_ONCE):
        chosen = slice(begin, begin + WINDOWS_AT_ONCE)
        positions = starts[chosen, None] + np.arange(window)
        inside = positions < ends[chosen, None]
        ids, offsets = texts.values[positions[inside]], np.append(0, inside.sum(axis=1).cumsum())
        present = sparse.csr_array((np.ones(len(ids), dtype=np.int32), ids, offsets), shape=(len(positions), words))
        present.sum_duplicates()
        present.data[:] = 1
        counts = counts + present.T @ present
    return counts, len(starts)


def positive_pmi(counts: sparse.csr_array, windows: int) -> sparse.coo_array:
    """log(p(i, j) / (p(i) p(j))) of two different words (words, words) where it is above 0, p being
    shares of the windows."""
    pairs, single = counts.tocoo(), counts.diagonal().astype(float)
    row, column = pairs.coords
    pmi = np.log(pairs.data * float(windows) / (single[row] * single[column]))
    kept = (pmi > 0) & (row != column)
    return sparse.coo_array((pmi[kept], (row[kept], column[kept])), shape=counts.shape)


def tf_idf(texts: Ragged, words: int) -> sparse.csr_array:
    """Count of a word in a text times log(texts / texts with the word): (texts, words)."""
    counts = sparse.csr_array((np.ones(len(texts.values)), texts.values, texts.offsets), shape=(len(texts), words))
    counts.sum_duplicates()
    texts_with = np.bincount(counts.indices, minlength=words)
    weighted = counts * np.log(len(texts) / texts_with.clip(min=1))
    weighted.eliminate_zeros()
    return weighted


def corpus_graph(texts: Ragged, words: int, window: int) -> sparse.csr_array:
    """Adjacency of texts, then words, as nodes: TF-IDF between a text and a word, positive PMI
    between words, 1 from a node to itself."""
    between = tf_idf(texts, words)
    edges = sparse.block_array(
        [[None, between], [between.T, positive_pmi(*count_pairs(texts, words, window))]], format="csr"
    )
    return edges + sparse.eye_array(edges.shape[0], format="csr")


def normalised(adjacency: sparse.csr_array) -> sparse.csr_array:
    """D^-1/2 A D^-1/2, D being the sums of A's rows."""
    scale = 1 / np.sqrt(adjacency.sum(axis=1))
    return sparse.csr_array(sparse.diags_array(scale) @ adjacency @ sparse.diags_array(scale))


class TextGraph(NamedTuple):
    """Texts and words as nodes: ``adjacency`` is their :func:`normalised` :func:`corpus_graph`, and
    ``nodes`` numbers the texts."""

    adjacency: sparse.csr_array
    nodes: dict[tuple[str, str], int]

    @classmethod
    def of(cls, rows: Iterable[Row], window: int, min_count: int) -> TextGraph:
        """The graph of the rows' lower-cased texts; words seen less than ``min_count`` times are
        left out."""
        texts = {_identity(row): [word.lower() for word in words_of(row["text"])] for row in rows}
        frequent = (
            word for word, count in Counter(w for text in texts.values() for w in text).items() if count >= min_count
        )
        numbers = {word: number for number, word in enumerate(frequent)}
        ids = Ragged.of([numbers[word] for word in text if word in numbers] for text in texts.values())
        return cls(
            normalised(corpus_graph(ids, len(numbers), window)), {identity: node for node, identity in enumerate(texts)}
        )

    def places(self, rows: Sequence[Row]) -> np.ndarray:
        """Node of each row's text (N,); ValueError for a row whose text is not in the graph."""
        missing = [row["id"] for row in rows if _identity(row) not in self.nodes]
        if missing:
            raise ValueError(
                f"a transductive system answers texts that were in its graph, and row {missing[0]} was not"
            )
        return np.array([self.nodes[_identity(row)] for row in rows], dtype=np.int64)


def _identity(row: Row) -> tuple[str, str]:
    return row["id"], plain(row["text"])
