"""Convolutional deep structured semantic model."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.ranking import sampled_softmax_loss
from harness.kinds import PairEncoder
from harness.registry import Recipe, register
from harness.views.word_trigrams import WordTrigramBatch, WordTrigrams


class Tower(nn.Module):
    """Words as letter trigrams to the text's vector (B, ``output``): windows of words, tanh, the
    maximum over the windows, tanh layer.

    A window's trigram counts, word beside word, times one matrix are the sum of a look-up in that
    matrix for each of its words: ``table`` holds, side by side, what a trigram adds to the window
    in which its word is first, second, ...
    """

    def __init__(self, trigrams: int, window: int, hidden: int, output: int):
        super().__init__()
        self.window = window
        self.table = nn.EmbeddingBag(trigrams, window * hidden, mode="sum")
        limit = math.sqrt(6 / (window * trigrams + hidden))
        nn.init.uniform_(self.table.weight, -limit, limit)
        self.semantic = nn.Linear(hidden, output, bias=False)
        nn.init.xavier_uniform_(self.semantic.weight)

    def windows(self, text: WordTrigramBatch) -> Tensor:
        """tanh(W_c l_t) of the window around each word, with nothing beyond the ends of the text:
        (B, T, hidden)."""
        words = self.table(text.ids, text.offsets)
        padded = words.new_zeros(*text.mask.shape, words.shape[-1]).masked_scatter(text.mask[..., None], words)
        before = self.window // 2
        widened = F.pad(padded, (0, 0, before, self.window - 1 - before))
        parts = widened.chunk(self.window, dim=-1)
        length = text.mask.shape[1]
        return torch.tanh(sum(part[:, place : place + length] for place, part in enumerate(parts)))

    def forward(self, text: WordTrigramBatch) -> Tensor:
        pooled = self.windows(text).masked_fill(~text.mask[..., None], -torch.inf).amax(1)
        return torch.tanh(self.semantic(pooled))


@register(
    "cdssm",
    name="CDSSM (CLSM)",
    kind="pair",
    paper="Shen et al. 2014",
    source="M2.8[114]",
    year=2014,
    recipe=Recipe(optimizer="sgd", lr=0.1, batch_size=1024),
    tiny={"hidden": 32, "output": 16},
    deviations=(
        "The learning rate, 0.1, and gamma, 10, are our choices; a program for the authors' release has 0.02 and 25.",
        "Negatives are drawn from the wrong candidates of the same question, not from all documents.",
        "All letter trigrams of the training texts are kept, not the 30,000 commonest.",
    ),
)
class CDSSM(PairEncoder):
    """DSSM with word order: each window of three words, as letter trigrams, to 300 tanh units,
    their maximum over the text, 128 tanh units.

    A score (B,) is the cosine of two texts' vectors, trained by the softmax of gamma * cosine over
    a right candidate and ``negatives`` drawn wrong ones. One tower reads both texts, or each has
    its own (``shared`` false). No layer has a bias: a text without any known trigram has the zero
    vector and scores 0.
    """

    view = WordTrigrams()
    scores = True
    whole_groups = True

    def __init__(
        self,
        width: int,
        window: int = 3,
        hidden: int = 300,
        output: int = 128,
        gamma: float = 10.0,
        negatives: int = 4,
        shared: bool = True,
    ):
        super().__init__()
        self.gamma, self.negatives = gamma, negatives
        self.query = Tower(width, window, hidden, output)
        self.document = self.query if shared else Tower(width, window, hidden, output)

    def forward(self, first: WordTrigramBatch, second: WordTrigramBatch) -> Tensor:
        return F.cosine_similarity(self.query(first), self.document(second))

    def rank_loss(self, scores: Tensor, labels: Tensor, groups: Tensor) -> Tensor:
        return sampled_softmax_loss(self.gamma * scores, labels, groups, self.negatives)
