"""Layers on texts as one-hot vectors, which the networks of Johnson and Zhang read without word
vectors in between."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

SPREAD = 0.01
"""Standard deviation of the Gaussian from which weights start."""


def started(layer: nn.Linear) -> nn.Linear:
    """The layer with Gaussian weights and its bias, if it has one, at zero."""
    nn.init.normal_(layer.weight, std=SPREAD)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer


class SparseLinear(nn.Module):
    """W x + b of vectors x of zeros and a few ones, given by the places of the ones: (B, R, P) ->
    (B, R, ``units``); place 0 is none.

    The product with such a vector is the sum of W's columns at its ones. So the columns are rows of
    a table and are looked up: a dense x, as long as the vocabulary, is never made.
    """

    def __init__(self, width: int, units: int):
        super().__init__()
        self.columns = nn.EmbeddingBag(width, units, mode="sum", sparse=True, padding_idx=0)
        nn.init.normal_(self.columns.weight, std=SPREAD)
        self.bias = nn.Parameter(self.columns.weight.new_zeros(units))

    def forward(self, ones: Tensor) -> Tensor:
        return self.columns(ones.flatten(0, 1)).unflatten(0, ones.shape[:2]) + self.bias


def square_loss(scores: Tensor, labels: Tensor) -> Tensor:
    """Half of the squared distance of scores (B, classes) to 1 for the label (B,) and 0 for all
    other classes, the mean of the texts."""
    wanted = F.one_hot(labels, scores.shape[1]).to(scores.dtype)
    return 0.5 * (scores - wanted).square().sum(1).mean()
