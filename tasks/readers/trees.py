"""Sentiment treebank: one binary tree in Penn brackets a line, each node labelled 0 (very negative)
to 4 (Socher et al. 2013)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from harness.errors import DataError
from tasks.readers.lines import lines

# Only brackets and the ASCII space separate: three training leaves hold a no-break space.
_TOKEN = re.compile(r"[()]|[^() ]+")
_LABELS = frozenset("01234")


class Tree(NamedTuple):
    """A sentence: its line in the file, the root's label, the leaves from left to right, and the
    brackets as they stand."""

    line: int
    label: int
    words: list[str]
    brackets: str


def trees(path: Path) -> Iterator[Tree]:
    """The trees of a file; :class:`DataError` names the line of one that is not a labelled binary
    tree."""
    for number, line in lines(path):
        if not line:
            continue
        try:
            label, words = parse(line)
        except ValueError as error:
            raise DataError(f"{path}, line {number}: {error}; expected a tree like (3 (2 Good) (2 film))") from error
        yield Tree(number, label, words, line)


def parse(brackets: str) -> tuple[int, list[str]]:
    """Root label and leaves of a tree; ``ValueError`` says what is wrong with it."""
    tokens = iter(_TOKEN.findall(brackets))
    words: list[str] = []
    open_nodes: list[tuple[int, list[str]]] = []  # label, and "word" or "node" for each child so far
    root: int | None = None
    for token in tokens:
        if root is not None:
            raise ValueError(f"{token!r:.80} stands after the end of the tree")
        if token == "(":
            label = next(tokens, "the end")
            if label not in _LABELS:
                raise ValueError(f"{label!r:.80} where a node label 0 to 4 was expected")
            open_nodes.append((int(label), []))
        elif not open_nodes:
            raise ValueError(f"{token!r:.80} stands outside the brackets")
        elif token == ")":
            label, children = open_nodes.pop()
            if children not in (["word"], ["node", "node"]):
                raise ValueError(
                    f"a node with {len(children)} children ({', '.join(children) or 'none':.80}), not one word or two"
                    " nodes"
                )
            if open_nodes:
                open_nodes[-1][1].append("node")
            else:
                root = label
        else:
            words.append(token)
            open_nodes[-1][1].append("word")
    if root is None:
        raise ValueError(f"{len(open_nodes)} brackets are not closed")
    return root, words
