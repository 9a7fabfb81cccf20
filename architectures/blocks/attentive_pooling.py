"""Two-way attentive pooling of a pair of texts."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from harness.layers.attention import masked_softmax


class AttentivePooling(nn.Module):
    """Each text's mean under how well each of its words meets its best partner in the other text
    (dos Santos et al. 2016, section 3).

    G = tanh(Q^T U A) compares every word of one text with every word of the other; the maximum of
    each row, over the real words of the other text, scores the words of the first, and the maximum
    of each column those of the second; softmaxes of the scores weight the means.
    """

    def __init__(self, size: int):
        super().__init__()
        self.similarity = nn.Parameter(torch.empty(size, size))
        nn.init.xavier_uniform_(self.similarity)

    def weights(self, first: Tensor, first_mask: Tensor, second: Tensor, second_mask: Tensor) -> tuple[Tensor, Tensor]:
        """Weights (B, M) and (B, L) of the texts' words, summing to one over the real ones."""
        compared = torch.tanh(first @ self.similarity @ second.transpose(1, 2))
        # No tanh lies below -1, so it can stand for padding in a maximum.
        rows = compared.masked_fill(~second_mask[:, None], -1.0).amax(2)
        columns = compared.masked_fill(~first_mask[:, :, None], -1.0).amax(1)
        return masked_softmax(rows, first_mask), masked_softmax(columns, second_mask)

    def forward(self, first: Tensor, first_mask: Tensor, second: Tensor, second_mask: Tensor) -> tuple[Tensor, Tensor]:
        """Vectors (B, size) of both texts from their states (B, M, size) and (B, L, size)."""
        of_first, of_second = self.weights(first, first_mask, second, second_mask)
        return (of_first[:, None] @ first).squeeze(1), (of_second[:, None] @ second).squeeze(1)
