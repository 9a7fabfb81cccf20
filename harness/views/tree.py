"""Binary parse trees, batched so that all nodes of one height are computed at once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from harness.ragged import Columns, Ragged, take
from harness.views.words import Vocabulary, VocabularyView

ABSENT = -1
_TOKEN = re.compile(r"\([^() ]*|\)|[^() ]+")
"""An opening bracket with its label, a closing one, or a word. Only the ASCII space separates:
words of the SST hold no-break spaces."""


class Tree(NamedTuple):
    """Nodes of one tree, children before parents, the root last: ``left`` and ``right`` child,
    ``height`` and ``label`` of each.

    Leaves have height 0, the children -1 and, in their order, the ``words``; a label is -1 where
    the bracket has no number.
    """

    words: list[str]
    left: list[int]
    right: list[int]
    height: list[int]
    label: list[int]


def parse(brackets: str) -> Tree:
    """The tree of ``(3 (2 a) (4 fine))``, a node with one child being that child with the upper
    label; ``ValueError`` if malformed."""
    tree = Tree([], [], [], [], [])

    def add(left: int, right: int, height: int, label: int) -> int:
        for column, value in zip(tree[1:], (left, right, height, label), strict=True):
            column.append(value)
        return len(tree.height) - 1

    open_labels: list[int] = []
    children: list[list[int]] = [[]]
    for token in _TOKEN.findall(brackets.rstrip("\r\n")):
        if token[0] == "(":
            open_labels.append(int(token[1:]) if token[1:].isdecimal() else ABSENT)
            children.append([])
        elif token != ")":
            tree.words.append(token)
            children[-1].append(add(ABSENT, ABSENT, 0, ABSENT))
        elif not open_labels:
            raise ValueError("a closing bracket has no opening one")
        else:
            label, nodes = open_labels.pop(), children.pop()
            if len(nodes) == 1:
                node = nodes[0]
                tree.label[node] = tree.label[node] if label == ABSENT else label
            elif len(nodes) == 2:
                left, right = nodes
                node = add(left, right, 1 + max(tree.height[left], tree.height[right]), label)
            else:
                raise ValueError(f"a node has {len(nodes)} children; a word, one or two nodes are expected")
            children[-1].append(node)
    if open_labels or len(children[0]) != 1:
        raise ValueError(
            "a bracket is not closed" if open_labels else f"{len(children[0])} roots where one is expected"
        )
    return tree


def without_labels(brackets: str) -> str:
    """The same tree without the labels of its nodes."""
    return re.sub(r"\([^() ]*", "(", brackets)


class Level(NamedTuple):
    """Nodes of one height, ``parents`` (n,), and where their ``left`` and ``right`` children (n,)
    stand among the open nodes.

    Open are the nodes whose parent is still to come: at first the leaves, after a level its parents
    and behind them those that stand at ``staying`` (m,). A recursion that carries the open nodes
    alone need not copy the states of all nodes at each level.
    """

    parents: Tensor
    left: Tensor
    right: Tensor
    staying: Tensor


class TreeBatch(NamedTuple):
    """Trees of B texts, L leaves and N nodes in all; nodes are numbered over the batch, text after
    text, children before parents.

    ``ids`` (L,) words of the leaves, ``leaf_nodes`` (L,) their nodes, ``levels`` one for each
    height from 1, ``labels`` (N,) -1 where absent, ``roots`` (B,), ``node_text`` (N,) the text each
    node belongs to, ``lengths`` (B,) leaves of each text, ``vectors`` (L, D).
    """

    ids: Tensor
    leaf_nodes: Tensor
    levels: tuple[Level, ...]
    labels: Tensor
    roots: Tensor
    node_text: Tensor
    lengths: Tensor
    vectors: Tensor = torch.empty(0)


def _schedule(by_height: list[np.ndarray], left: np.ndarray, right: np.ndarray) -> Iterator[Level]:
    """The levels of the nodes of each height, leaves first, whose children are ``left`` and
    ``right`` (N,)."""
    place, open_nodes = np.empty(len(left), dtype=np.int64), by_height[0]
    for parents in by_height[1:]:
        place[open_nodes] = np.arange(len(open_nodes))
        children = place[left[parents]], place[right[parents]]
        staying = np.delete(np.arange(len(open_nodes)), np.concatenate(children))
        yield Level(*map(torch.from_numpy, (parents, *children, staying)))
        open_nodes = np.concatenate([parents, open_nodes[staying]])


@dataclass
class Trees(VocabularyView):
    """Bracketed trees with node labels; vocabulary as in :class:`~harness.views.words.Words`."""

    lower: bool = True
    min_count: int = 2
    column: ClassVar[str] = "tree"
    embeds: ClassVar[bool] = True

    def read(self, trees: Sequence[str]) -> list[Tree]:
        """The parsed trees; ``ValueError`` with the number and the beginning of a malformed one."""
        read = []
        for number, brackets in enumerate(trees):
            try:
                tree = parse(brackets)
            except ValueError as error:
                raise ValueError(f"tree {number}, {brackets[:60]!r}: {error}") from error
            read.append(tree._replace(words=[word.lower() for word in tree.words]) if self.lower else tree)
        return read

    def fit(self, texts: Sequence[str]) -> None:
        self.vocabulary = Vocabulary.of((word for tree in self.read(texts) for word in tree.words), self.min_count)

    def encode(self, texts: Sequence[str]) -> Columns:
        trees = self.read(texts)
        columns: Columns = {
            name: Ragged.of(getattr(tree, name) for tree in trees) for name in ("left", "right", "height", "label")
        }
        return columns | {"ids": Ragged.of(self.vocabulary.ids(tree.words) for tree in trees)}

    def collate(self, columns: Columns, rows: np.ndarray) -> TreeBatch:
        words, height = take(columns["ids"], rows), take(columns["height"], rows)
        first_node = np.repeat(height.offsets[:-1], height.lengths)
        left, right = (take(columns[side], rows).values + first_node for side in ("left", "right"))
        by_height = np.argsort(height.values, kind="stable")
        levels = np.split(by_height, np.cumsum(np.bincount(height.values))[:-1])
        return TreeBatch(
            ids=torch.from_numpy(words.values).long(),
            leaf_nodes=torch.from_numpy(levels[0]),
            levels=tuple(_schedule(levels, left, right)),
            labels=torch.from_numpy(take(columns["label"], rows).values).long(),
            roots=torch.from_numpy(height.offsets[1:] - 1),
            node_text=torch.from_numpy(np.repeat(np.arange(len(rows)), height.lengths)),
            lengths=torch.from_numpy(words.lengths),
        )
