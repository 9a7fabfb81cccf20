"""Recurrent contexts beside each word, then a maximum over the words."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.blocks.contexts import Context
from architectures.blocks.recurrent import reverse
from harness.kinds import TextEncoder, pool
from harness.registry import Recipe, register
from harness.views.words import WordBatch


@register(
    "rcnn",
    name="Recurrent CNN",
    kind="text",
    paper="Lai et al. 2015",
    source="M2.9[134] X4.5.1",
    year=2015,
    recipe=Recipe(optimizer="sgd", lr=0.01, batch_size=1, vector_dims=50),
    tiny={"context": 12, "hidden": 24},
    vectors_of_paper="Skip-gram, trained on Wikipedia",
    deviations=("The paper leaves the contexts' nonlinearity open; it is tanh here.",),
)
class RecurrentCNN(TextEncoder):
    """Each word with its left and right context, [c_l; e; c_r], through a tanh layer; each unit's
    maximum over the words, (B, hidden).

    The contexts are two recurrences (:class:`Context`) that meet at the word and leave it out.
    """

    def __init__(self, width: int, context: int = 50, hidden: int = 100):
        super().__init__()
        self.left, self.right = Context(width, context), Context(width, context)
        self.project = nn.Linear(2 * context + width, hidden)
        self.size = hidden

    def forward(self, words: WordBatch) -> Tensor:
        vectors, mask = words.vectors, words.mask
        right = reverse(self.right(reverse(vectors, mask)), mask)
        joined = torch.cat([self.left(vectors), vectors, right], dim=-1)
        return pool(torch.tanh(self.project(joined)), mask, "max")
