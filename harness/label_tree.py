"""The tree over the labels of a task: which label is part of which."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence


def ancestors(label: str, parents: Mapping[str, str]) -> list[str]:
    """The labels above one, nearest first; ``ValueError`` where they lead back to it."""
    found: list[str] = []
    while label in parents:
        label = parents[label]
        if label in found:
            raise ValueError(f"label tree: {label!r} is above itself")
        found.append(label)
    return found


def with_ancestors(labels: Collection[str], parents: Mapping[str, str]) -> set[str]:
    """The labels and all that are above one of them."""
    return {*labels, *(above for label in labels for above in ancestors(label, parents))}


class LabelTree:
    """The labels that a model scores, in their order, and their places in the task's tree.

    ``parents`` has the parent of each label that has one, scored or not. ``nodes`` are the labels
    first, then the others above them, sorted; ``paths`` has the numbers, among the nodes, of each
    node's ancestors, nearest first.
    """

    def __init__(self, labels: Sequence[str], parents: Mapping[str, str]):
        self.labels, self.parents = list(labels), dict(parents)
        above = with_ancestors(labels, parents)
        self.nodes = [*labels, *sorted(above - {*labels})]
        number = {node: place for place, node in enumerate(self.nodes)}
        self.paths = [[number[name] for name in ancestors(node, parents)] for node in self.nodes]

    @property
    def edges(self) -> list[tuple[int, int]]:
        """Numbers of the parent and the child of each edge between nodes."""
        return [(path[0], child) for child, path in enumerate(self.paths) if path]
