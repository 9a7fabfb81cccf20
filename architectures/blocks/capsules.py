"""Capsules: vectors whose length is the probability that what they stand for is there (Zhao et al.
2018, after Sabour et al. 2017)."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.windows import lengthen, window_mask, windows_inside

USUAL_POSITIONS = 20
"""Positions of a text of usual length, for the scale at which class capsules start."""


def squash(vectors: Tensor) -> Tensor:
    """|s| / (0.5 + |s|^2) * s: the direction of each vector (..., size) with a length |s|^2 / (0.5
    + |s|^2) below one."""
    length = torch.linalg.vector_norm(vectors, dim=-1, keepdim=True)
    return length / (0.5 + length**2) * vectors


def leaky_softmax(logits: Tensor) -> Tensor:
    """Softmax over the parents (..., J) and one more with logit zero, whose share is lost: the rest
    sums to less than one."""
    return torch.softmax(F.pad(logits, (1, 0)), dim=-1)[..., 1:]


class Routing(nn.Module):
    """Capsules (..., I, size) to parent capsules (..., ``parents``, size) by ``iterations`` of
    routing by agreement.

    Child i votes u_{j|i} = W_j u_i + b_j for parent j; all children share W_j. From b_ij = 0, each
    round gives c_ij = |u_i| leaky_softmax_j(b_ij), v_j = squash(sum_i c_ij u_{j|i}), and b_ij grows
    by v_j . u_{j|i} (algorithm 1). The factor |u_i|, the probability that the child is there,
    amends the coefficients: a child of zeros adds nothing.

    As W_j is shared, the sum of votes is W_j (sum_i c_ij u_i) + b_j sum_i c_ij, and the agreement
    (W_j^T v_j) . u_i + v_j . b_j: the votes themselves, by far the largest array, are never made.
    Memory grows with I times ``parents``.

    Each child's share starts at 1 / (parents + 1), and squashing shortens. The matrices start so
    much the larger that the sum of ``children`` votes (as many as are usual) is as long as one
    child: else capsules vanish from layer to layer.
    """

    def __init__(self, size: int, parents: int, children: int, iterations: int = 3):
        super().__init__()
        if iterations < 1:
            raise ValueError(f"iterations is {iterations}: routing takes at least one")
        self.iterations = iterations
        self.transformations = nn.Parameter(torch.empty(parents, size, size))
        self.bias = nn.Parameter(torch.zeros(parents, size))
        nn.init.normal_(self.transformations, std=(parents + 1) / math.sqrt(children * size))

    def forward(self, children: Tensor) -> Tensor:
        exists = torch.linalg.vector_norm(children, dim=-1, keepdim=True)
        logits = children.new_zeros(*children.shape[:-1], len(self.bias))
        for iteration in range(self.iterations):
            coefficients = exists * leaky_softmax(logits)
            gathered = torch.einsum("...jd,jkd->...jk", coefficients.mT @ children, self.transformations)
            parents = squash(gathered + coefficients.sum(-2)[..., None] * self.bias)
            if iteration < self.iterations - 1:
                asked = torch.einsum("...jk,jkd->...jd", parents, self.transformations)
                logits = logits + children @ asked.mT + (parents * self.bias).sum(-1)[..., None, :]
        return parents


def keep_scale(layer: nn.Linear | nn.Conv1d) -> None:
    """Start a layer that is followed or preceded by ReLU so that it keeps the scale of its input
    (He et al. 2015), without bias."""
    nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
    nn.init.zeros_(layer.bias)


class PrimaryCapsules(nn.Module):
    """Feature maps (B, T, maps) to ``capsules`` capsules at each position: (B, T, capsules,
    size)."""

    def __init__(self, maps: int, capsules: int, size: int):
        super().__init__()
        self.size = size
        self.filters = nn.Linear(maps, capsules * size)
        keep_scale(self.filters)

    def forward(self, features: Tensor) -> Tensor:
        return squash(self.filters(features).unflatten(-1, (-1, self.size)))


class ConvolutionalCapsules(nn.Module):
    """Capsules (B, T, C, size) to parents (B, T - window + 1, ``capsules``, size), each routed from
    the children in its window.

    Fewer positions than a window are lengthened by capsules of zeros, which are not there, to one
    window.
    """

    def __init__(self, size: int, children: int, capsules: int, window: int, iterations: int = 3):
        super().__init__()
        self.window = window
        self.routing = Routing(size, capsules, window * children, iterations)

    def forward(self, children: Tensor) -> Tensor:
        windows = lengthen(children, self.window).unfold(1, self.window, 1)
        return self.routing(windows.movedim(-1, 2).flatten(2, 3))


class CapsuleColumn(nn.Module):
    """Word vectors (B, T, width) to class capsules (B, classes + 1, ``size``); the last one is the
    orphan, which collects background.

    An n-gram convolution with ReLU, primary capsules, convolutional capsules, and class capsules
    routed from all of these. Windows that reach beyond the text give capsules of zeros, so that the
    orphan and the classes hear from the text alone, whatever its length. With the paper's sizes, a
    training step on 32 texts of 400 words takes 0.8 GiB.
    """

    def __init__(
        self,
        width: int,
        classes: int,
        ngram: int,
        maps: int,
        primary: int,
        capsules: int,
        size: int,
        window: int,
        iterations: int,
    ):
        super().__init__()
        self.ngrams = nn.Conv1d(width, maps, ngram)
        keep_scale(self.ngrams)
        self.primary = PrimaryCapsules(maps, primary, size)
        self.convolutional = ConvolutionalCapsules(size, primary, capsules, window, iterations)
        self.classes = Routing(size, classes + 1, USUAL_POSITIONS * capsules, iterations)

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        ngram, lengths = self.ngrams.kernel_size[0], mask.sum(1)
        features = torch.relu(self.ngrams(lengthen(vectors * mask[..., None], ngram).mT)).mT
        capsules = present(self.primary(features), lengths, ngram)
        capsules = present(self.convolutional(capsules), windows_inside(lengths, ngram), self.convolutional.window)
        return self.classes(capsules.flatten(1, 2))


def present(capsules: Tensor, lengths: Tensor, window: int) -> Tensor:
    """Capsules (B, T, C, size), with zeros where the ``window`` that begins at a position is not
    inside the ``lengths`` (B,) of the text."""
    return capsules * window_mask(lengths, window, capsules.shape[1])[..., None, None]


def separate_margin_loss(
    lengths: Tensor, labels: Tensor, above: float = 0.9, below: float = 0.1, absent: float = 0.5
) -> Tensor:
    """Mean over texts of max(0, above - |v|)^2 for the label's capsule plus ``absent`` * max(0, |v|
    - below)^2 for each other one.

    ``lengths`` |v| (B, classes), ``labels`` (B,). Sabour et al. 2017, equation 4; the released code
    of Zhao et al. has ``absent`` 0.25.
    """
    return set_margin_losses(lengths, F.one_hot(labels, lengths.shape[1]), above, below, absent).mean()


def set_margin_losses(
    lengths: Tensor, labels: Tensor, above: float = 0.9, below: float = 0.1, absent: float | Tensor = 0.5
) -> Tensor:
    """The terms of :func:`separate_margin_loss` of each text (B,), which may have any of the labels
    (B, classes), in 0/1; ``absent`` may be a weight for each of them."""
    here = torch.relu(above - lengths) ** 2
    return (labels * here + absent * (1 - labels) * torch.relu(lengths - below) ** 2).sum(1)
