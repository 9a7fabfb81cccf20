"""Features of a word from its characters."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn


class CharacterConvolution(nn.Module):
    """Characters (..., C) of words to a vector (..., filters) each: vectors, dropout, convolution,
    ``activation``, maximum over the word.

    ``activation`` must not fall anywhere. The word is lengthened by zero vectors at both ends, so
    that each of its characters stands at every place of a window and the shortest word fills one.
    Ma & Hovy 2016, section 2.1; Kim 2014.
    """

    def __init__(
        self,
        alphabet: int,
        size: int,
        filters: int,
        window: int,
        dropout: float,
        activation: Callable[[Tensor], Tensor] = torch.tanh,
    ):
        super().__init__()
        limit = math.sqrt(3 / size)
        weights = torch.empty(alphabet, size).uniform_(-limit, limit)
        weights[0] = 0
        self.vectors = nn.Embedding.from_pretrained(weights, freeze=False, padding_idx=0)
        self.dropout = nn.Dropout(dropout)
        self.convolution = nn.Conv1d(size, filters, window, padding=window - 1)
        self.activation = activation

    def forward(self, characters: Tensor, mask: Tensor) -> Tensor:
        words = characters.shape[:-1]
        characters, mask = characters.reshape(-1, characters.shape[-1]), mask.reshape(-1, mask.shape[-1])
        maps = self.convolution(self.dropout(self.vectors(characters)).transpose(1, 2))
        # Windows that hold nothing of the word are those behind its last character and the zeros
        # that lengthen it.
        windows = mask.sum(1) + self.convolution.kernel_size[0] - 1
        inside = torch.arange(maps.shape[-1], device=maps.device) < windows[:, None]
        return self.activation(maps.masked_fill(~inside[:, None], -torch.inf).amax(-1)).view(*words, -1)
