"""Similarity of labels in a taxonomy, by skip-gram vectors of what random walks over it meet
(Perozzi et al. 2014, Mikolov et al. 2013)."""

from __future__ import annotations

import numpy as np
import torch
from scipy.special import softmax
from torch import Tensor

from harness.label_tree import LabelTree


def taxonomy(tree: LabelTree) -> list[list[int]]:
    """The parent and the children of each label, and last those of a root above all labels that
    have no parent."""
    root = len(tree.nodes)
    neighbours: list[list[int]] = [[] for _ in range(root + 1)]
    for child, path in enumerate(tree.paths):
        parent = path[0] if path else root
        neighbours[child].append(parent)
        neighbours[parent].append(child)
    return neighbours


def random_walks(neighbours: list[list[int]], walks: int, steps: int, rng: np.random.Generator) -> np.ndarray:
    """The nodes (nodes * ``walks``, ``steps`` + 1) of walks that begin at each node and go on to
    any neighbour alike."""
    degrees = np.array([len(each) for each in neighbours])
    table = np.array([each + each[:1] * (degrees.max() - len(each)) for each in neighbours])
    places = [np.repeat(np.arange(len(neighbours)), walks)]
    for _ in range(steps):
        here = places[-1]
        places.append(table[here, rng.integers(degrees[here])])
    return np.stack(places, axis=1)


def pairs_within(walks: np.ndarray, window: int, nodes: int) -> np.ndarray:
    """Counts (nodes, nodes) of how often two nodes stand at most ``window`` places apart."""
    counts = np.zeros((nodes, nodes))
    for apart in range(1, window + 1):
        np.add.at(counts, (walks[:, :-apart], walks[:, apart:]), 1)
    return counts + counts.T


def skip_gram(counts: np.ndarray, dims: int, epochs: int, rate: float, rng: np.random.Generator) -> np.ndarray:
    """Vectors (nodes, ``dims``) from which a softmax over all nodes foretells those around.

    The nodes are few, so that each step of gradient descent is over all pairs and nothing is drawn.
    Each node weighs alike, whether or not many walks meet it; the vector that is foretold moves by
    the mean over the pairs that it is in.
    """
    inner, outer = rng.normal(scale=0.1, size=(2, len(counts), dims))
    shares = counts / counts.sum(1, keepdims=True)
    for _ in range(epochs):
        errors = rate * (softmax(inner @ outer.T, axis=1) - shares)
        inner, outer = inner - errors @ outer, outer - errors.T @ inner / shares.sum(0)[:, None]
    return inner


def label_cosines(
    tree: LabelTree,
    walks: int = 100,
    steps: int = 20,
    window: int = 3,
    dims: int = 16,
    epochs: int = 500,
    rate: float = 0.1,
) -> Tensor:
    """Cosines (labels, labels) of the vectors of a task's labels, the same in every run; zeros for
    labels without a tree, of which none is nearer than another."""
    labels = len(tree.labels)
    if not tree.edges:
        return torch.zeros(labels, labels)
    rng = np.random.default_rng(0)
    neighbours = taxonomy(tree)
    counts = pairs_within(random_walks(neighbours, walks, steps, rng), window, len(neighbours))
    vectors = skip_gram(counts, dims, epochs, rate, rng)[:labels]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return torch.tensor(vectors @ vectors.T, dtype=torch.float32)
