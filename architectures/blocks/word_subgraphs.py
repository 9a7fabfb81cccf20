"""A text as sub-graphs of its words: the words around each of its most connected words."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from architectures.blocks.content_words import content_words
from harness.ragged import Columns, Ragged
from harness.views.base import Text
from harness.views.graph import graph_of
from harness.views.words import Words


def neighbours_of(nodes: int, edges: np.ndarray) -> list[list[int]]:
    """The neighbours of each node by falling edge weight, of equally heavy ones the first node;
    edges (E, 3) are two nodes and a weight."""
    found: list[list[tuple[int, int]]] = [[] for _ in range(nodes)]
    for low, high, weight in edges.tolist():
        found[low].append((-weight, high))
        found[high].append((-weight, low))
    return [[node for _, node in sorted(each)] for each in found]


def breadth_first(root: int, neighbours: Sequence[Sequence[int]], most: int) -> list[int]:
    """The first nodes that a breadth-first search from a root meets, the root among them."""
    found, waiting = [root], deque([root])
    while waiting:
        for node in neighbours[waiting.popleft()]:
            if len(found) == most:
                return found
            if node not in found:
                found.append(node)
                waiting.append(node)
    return found


def roots_of(neighbours: Sequence[Sequence[int]], counts: Sequence[int], most: int) -> list[int]:
    """The nodes with the most neighbours first; of these those that occur most, then those whose
    neighbours have the most neighbours, then the first."""
    degrees = [len(each) for each in neighbours]
    around = [sum(degrees[node] for node in each) for each in neighbours]
    order = sorted(range(len(degrees)), key=lambda node: (-degrees[node], -counts[node], -around[node], node))
    return order[:most]


@dataclass
class WordSubgraphs(Words):
    """Content words of a text as at most ``roots`` sequences of ``around`` words, one behind
    another: each is what a breadth-first search meets from one of its most connected words.

    Two words are joined by an edge where they stand at most ``reach`` places apart, as heavy as
    often they do. A sequence that ends early, where a part of the text has no more words, is filled
    with padding. The batch is that of :class:`~harness.views.words.Words`, T being the number of
    roots times ``around``, its mask false at padding.
    """

    roots: int = 96
    around: int = 10
    reach: int = 2
    divides: ClassVar[bool] = False

    def split(self, text: Text) -> list[str]:
        return content_words(text)[: self.max_length] or [""]

    def encode(self, texts: Sequence[Text]) -> Columns:
        words = super().encode(texts)
        found: dict[str, list[np.ndarray]] = {name: [] for name in words}
        for text in range(len(texts)):
            spellings = words["spellings"][text]
            places, edges = graph_of(spellings, self.reach)
            counts = [int((spellings == spellings[place]).sum()) for place in places]
            neighbours = neighbours_of(len(places), edges)
            nodes = np.full((min(self.roots, len(places)), self.around), -1)
            for row, root in enumerate(roots_of(neighbours, counts, self.roots)):
                met = self.arranged(breadth_first(root, neighbours, self.around))
                nodes[row, : len(met)] = met
            for name, column in words.items():
                found[name].append(np.where(nodes < 0, 0, column[text][places[nodes]]).ravel())
        return {name: Ragged.of(each) for name, each in found.items()}

    def arranged(self, met: list[int]) -> list[int]:
        """The words of a sequence, by the order in which the search met them, in that of the
        sequence."""
        return met

    def collate(self, columns: Columns, rows: np.ndarray):
        batch = super().collate(columns, rows)
        return batch._replace(mask=batch.ids != 0)


@dataclass
class SubgraphsInOrder(WordSubgraphs):
    """As :class:`WordSubgraphs`, with the words of each sequence in the order in which the text
    says them first."""

    def arranged(self, met: list[int]) -> list[int]:
        return sorted(met)
