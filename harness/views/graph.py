"""Texts as graphs of their distinct words, with an edge between those that stand near each
other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from harness.ragged import Columns, Ragged, take
from harness.views.base import Text
from harness.views.words import UNKNOWN, Words


class GraphBatch(NamedTuple):
    """Graphs of B texts: the fields of a :class:`~harness.views.words.WordBatch`, a position being
    a node (N at most), and E edges.

    Nodes are numbered over the padded batch: node n of text b is ``b * N + n``. An edge leads from
    ``sources`` (E,) to ``targets`` (E,), in the order of the targets, and has its opposite; no node
    has one to itself. ``counts`` (E,) say how often the two words stand near each other, ``pairs``
    (E,) number the words' pairs for a view that has learnt some.
    """

    ids: Tensor
    mask: Tensor
    lengths: Tensor
    vectors: Tensor = torch.empty(0)
    static: Tensor = torch.empty(0)
    spellings: Tensor = torch.empty(0)
    sources: Tensor = torch.empty(0)
    targets: Tensor = torch.empty(0)
    counts: Tensor = torch.empty(0)
    pairs: Tensor = torch.empty(0)

    def adjacency(self) -> Tensor:
        """Counts (B, N, N) as a matrix for each text, targets before sources."""
        texts, nodes = self.mask.shape
        matrix = self.vectors.new_zeros(texts * nodes, nodes)
        return matrix.index_put((self.targets, self.sources % nodes), self.counts.to(matrix)).view(texts, nodes, nodes)


def graph_of(words: np.ndarray, reach: int) -> tuple[np.ndarray, np.ndarray]:
    """The graph of a text given by the numbers of its words (T,): places (N,) where distinct words
    stand first, and edges (E, 3).

    An edge is two nodes, the smaller number first, and the count of pairs of places that have the
    two words and lie at most ``reach`` apart. Nodes are numbered in the order of their places.
    """
    _, first, node = np.unique(words, return_index=True, return_inverse=True)
    order = np.argsort(first)
    node = np.argsort(order)[node]
    pairs = np.concatenate([np.stack([node[:-d], node[d:]]) for d in range(1, reach + 1)], axis=1)
    low, high = np.sort(pairs, axis=0)
    edges, counts = np.unique((low * len(first) + high)[low < high], return_counts=True)
    return first[order], np.stack([edges // len(first), edges % len(first), counts], axis=1)


@dataclass
class WordGraphs(Words):
    """Words as in :class:`Words`, each distinct one a node, with edges between words that stand at
    most ``reach`` places apart. Unknown words are different nodes if they are written
    differently."""

    reach: int = 3

    def encode(self, texts: Sequence[Text]) -> Columns:
        words = super().encode(texts)
        ids, spellings = words["ids"], words["spellings"]
        graphs = [graph_of(spellings[text], self.reach) for text in range(len(spellings))]
        return {
            "ids": Ragged.of(ids[text][nodes] for text, (nodes, _) in enumerate(graphs)),
            "spellings": Ragged.of(spellings[text][nodes] for text, (nodes, _) in enumerate(graphs)),
            "edges": Ragged.of(edges for _, edges in graphs),
        }

    def collate(self, columns: Columns, rows: np.ndarray) -> Any:
        """The :class:`GraphBatch` of the given rows."""
        nodes, flat = super().collate(columns, rows), columns["edges"]
        assert isinstance(flat, Ragged)
        edges = take(flat, rows)
        first_node = np.repeat(np.arange(len(rows)) * nodes.mask.shape[1], edges.lengths)
        low, high = edges.values[:, 0] + first_node, edges.values[:, 1] + first_node
        targets = np.concatenate([low, high])
        order = np.argsort(targets, kind="stable")
        sources, counts = np.concatenate([high, low]), np.tile(edges.values[:, 2], 2)
        return GraphBatch(*nodes, *(torch.from_numpy(each[order]).long() for each in (sources, targets, counts)))


@dataclass
class WordPairGraphs(WordGraphs):
    """Word graphs whose edges have numbers that are the same in every text: one for each pair of
    known words, source and target, that are neighbours at least ``min_pairs`` times in training; 0
    for all others."""

    min_pairs: int = 2

    @property
    def pairs(self) -> int:
        """Count of the numbers that edges may have, 0 included."""
        return len(self._keys) + 1

    def fit(self, texts: Sequence[Text]) -> None:
        super().fit(texts)
        columns = super().encode(texts)
        ids, edges = columns["ids"], columns["edges"]
        assert isinstance(ids, Ragged) and isinstance(edges, Ragged)
        first_node = np.repeat(ids.offsets[:-1], edges.lengths)
        low, high = (ids.values[edges.values[:, side] + first_node].astype(np.int64) for side in (0, 1))
        keys, places = np.unique(np.concatenate([self._key(low, high), self._key(high, low)]), return_inverse=True)
        counts = np.bincount(places, weights=np.tile(edges.values[:, 2], 2))
        self._keys = keys[(counts >= self.min_pairs) & (keys // self.width > UNKNOWN) & (keys % self.width > UNKNOWN)]

    def _key(self, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
        return sources * self.width + targets

    def collate(self, columns: Columns, rows: np.ndarray) -> Any:
        """The :class:`GraphBatch` of the given rows, with ``pairs``."""
        graphs = super().collate(columns, rows)
        ids = graphs.ids.flatten().numpy()
        keys = self._key(ids[graphs.sources], ids[graphs.targets])
        places = np.searchsorted(self._keys, keys)
        known = np.append(self._keys, -1)[places] == keys
        return graphs._replace(pairs=torch.from_numpy(np.where(known, places + 1, 0)))

    def state(self) -> dict[str, Any]:
        return super().state() | {"pairs": self._keys.tolist()}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self._keys = np.array(state["pairs"], dtype=np.int64)
