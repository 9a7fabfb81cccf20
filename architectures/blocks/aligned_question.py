"""The question as each word of a passage sees it (Chen et al. 2017)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from harness.layers.attention import masked_softmax


class AlignedQuestion(nn.Module):
    """sum_j a_ij q_j for each passage word p_i, with a_i the softmax over j of relu(W p_i + b) .
    relu(W q_j + b): word vectors (B, T, width) and (B, U, width) -> (B, T, width)."""

    def __init__(self, width: int):
        super().__init__()
        self.projection = nn.Linear(width, width)

    def forward(self, passage: Tensor, question: Tensor, question_mask: Tensor) -> Tensor:
        asked, read = torch.relu(self.projection(question)), torch.relu(self.projection(passage))
        return masked_softmax(read @ asked.transpose(1, 2), question_mask[:, None]) @ question
