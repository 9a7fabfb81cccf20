"""Attention of a passage and its question to each other."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from harness.layers.attention import masked_softmax


class Similarity(nn.Module):
    """w . [h; u; h * u] of every h (B, T, size) with every u (B, J, size): (B, T, J).

    Split into a term of h, one of u and a bilinear one, so that the (B, T, J, 3 * size) vectors
    never exist.
    """

    def __init__(self, size: int):
        super().__init__()
        self.first, self.second = (nn.Linear(size, 1, bias=False) for _ in range(2))
        self.product = nn.Parameter(nn.Linear(size, 1).weight.detach()[0])

    def forward(self, h: Tensor, u: Tensor) -> Tensor:
        return self.first(h) + self.second(u).transpose(1, 2) + (h * self.product) @ u.transpose(1, 2)


class BiAttention(nn.Module):
    """G = [h; u~; h * u~; h * h~] (B, T, 4 * size) of passage states h (B, T, size) and question
    states u (B, J, size), whose masks are given.

    With S_tj = w . [h_t; u_j; h_t * u_j], the question that word t attends to is u~_t = sum_j
    softmax_j(S_tj) u_j. The passage words that matter to any question word are h~ = sum_t
    softmax_t(max_j S_tj) h_t, one vector for all t. Seo et al. 2017, section 2.
    """

    def __init__(self, size: int):
        super().__init__()
        self.similarity = Similarity(size)

    def forward(self, h: Tensor, passage: Tensor, u: Tensor, question: Tensor) -> Tensor:
        similarity = self.similarity(h, u)
        of_question = masked_softmax(similarity, question[:, None]) @ u
        strongest = similarity.masked_fill(~question[:, None], -torch.inf).amax(2)
        of_passage = masked_softmax(strongest, passage)[:, None] @ h
        return torch.cat([h, of_question, h * of_question, h * of_passage], dim=-1)
