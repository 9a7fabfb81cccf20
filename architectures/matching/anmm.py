"""Attention-based neural matching model."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.ranking import pairwise_hinge_loss
from harness.kinds import PairEncoder
from harness.layers.attention import masked_softmax
from harness.layers.overlap import same_words
from harness.registry import Recipe, register
from harness.views.words import UNKNOWN, WordBatch


def bin_sums(similarities: Tensor, exact: Tensor, mask: Tensor, bins: int) -> Tensor:
    """Sums (B, T, bins) of the similarities (B, T, U) of each question word, by their value.

    All bins but the last share [-1, 1] evenly, each with its lower border; the last holds what is
    ``exact`` (B, T, U). Answer words outside ``mask`` (B, U) count nowhere. Gradients go to the
    similarities that are summed, not to the borders.
    """
    by_value = ((similarities.detach() + 1) / 2 * (bins - 1)).long().clamp(0, bins - 2)
    numbers = by_value.masked_fill(exact, bins - 1)
    sums = similarities.new_zeros(*similarities.shape[:2], bins)
    return sums.scatter_add(2, numbers, similarities * mask[:, None])


@register(
    "anmm_1",
    name="aNMM-1",
    kind="pair",
    paper="Yang et al. 2016",
    source="M2.5[88]",
    year=2016,
    recipe=Recipe(
        # Their step of 0.025 goes along the sum over a batch of 1,000; the loss here is a mean.
        optimizer="sgd",
        lr=25.0,
        lr_schedule="linear",
        batch_size=1000,
        epochs=300,
        patience=300,
        vector_dims=200,
    ),
    tiny={"bins": 21, "tuned": True},
    vectors_of_paper="word2vec",
    deviations=(
        (
            "A batch is 1,000 pairs of question and answer, in the authors' code 1,000 triples of a question, a right"
            " and a wrong answer; the learning rate, 25 for the mean over its triples, is their 0.025 for the sum."
        ),
        "An unknown word is like itself alone; in the authors' program one of the question has a random vector.",
    ),
    variants={"anmm_2": {"name": "aNMM-2", "hyperparameters": {"bins": 200, "hidden": 10}}},
)
class AttentionBasedMatching(PairEncoder):
    """Cosines of question and answer words, summed by value: a weight belongs to a range of
    similarity, not to a position.

    x_jk sums the similarities of question word j that fall into bin k of [-1, 1], the last bin
    being kept for words that are the same. h_j = sigmoid(sum_k w_k x_jk), or with ``hidden`` sets
    of weights (aNMM-2) sigmoid(sum_t r_t sigmoid(sum_k w_tk x_jk)). A softmax gate over v . q_j
    says how much each question word counts; the score (B,) is the gated sum. An unknown word is
    similar to itself alone. The word vectors are fixed; ``tuned`` trains them, for lack of
    pre-trained ones.
    """

    scores = True
    whole_groups = True

    def __init__(self, width: int, bins: int = 600, hidden: int = 0, margin: float = 1.0, tuned: bool = False):
        super().__init__()
        self.vectors = "tuned" if tuned else "fixed"
        self.bins, self.margin = bins, margin
        self.bin_weights = nn.Linear(bins, hidden or 1, bias=False)
        self.set_weights = nn.Linear(hidden, 1, bias=False) if hidden else None
        self.gate = nn.Linear(width, 1, bias=False)
        for weights in self.parameters():
            nn.init.uniform_(weights, 0, 1)

    def similarities(self, first: WordBatch, second: WordBatch, exact: Tensor) -> Tensor:
        """Cosines (B, T, U); 1 where the words are the same, 0 where one has no vector of its
        own."""
        cosines = F.normalize(first.vectors, dim=-1) @ F.normalize(second.vectors, dim=-1).transpose(1, 2)
        strange = (first.ids == UNKNOWN)[:, :, None] | (second.ids == UNKNOWN)[:, None]
        return cosines.masked_fill(strange, 0.0).masked_fill(exact, 1.0)

    def forward(self, first: WordBatch, second: WordBatch) -> Tensor:
        exact = same_words(first, second)
        matched = bin_sums(self.similarities(first, second, exact), exact, second.mask, self.bins)
        words = torch.sigmoid(self.bin_weights(matched))
        if self.set_weights is not None:
            words = torch.sigmoid(self.set_weights(words))
        gates = masked_softmax(self.gate(first.vectors).squeeze(-1), first.mask)
        return (gates * words.squeeze(-1)).sum(1)

    def rank_loss(self, scores: Tensor, labels: Tensor, groups: Tensor) -> Tensor:
        return pairwise_hinge_loss(scores, labels, groups, self.margin)
