"""Decomposable attention."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from harness.kinds import PairEncoder
from harness.layers.attention import masked_softmax
from harness.registry import Recipe, register
from harness.views.words import WordBatch


def feed_forward(width: int, hidden: int, dropout: float) -> nn.Sequential:
    """Two ReLU layers of ``hidden`` units, dropout before each."""
    first = (nn.Dropout(dropout), nn.Linear(width, hidden), nn.ReLU())
    return nn.Sequential(*first, nn.Dropout(dropout), nn.Linear(hidden, hidden), nn.ReLU())


class IntraAttention(nn.Module):
    """Each word joined with its text's words under the softmax of F(a_i) . F(a_j) + d_{i-j}: (B, T,
    size) -> (B, T, 2 * size).

    ``d`` has an entry for each distance from -``reach`` to ``reach``, and one that all farther
    words share.
    """

    def __init__(self, size: int, reach: int, dropout: float):
        super().__init__()
        self.reach = reach
        self.compare = feed_forward(size, size, dropout)
        self.distance = nn.Parameter(torch.zeros(2 * reach + 2))

    def bias(self, length: int) -> Tensor:
        """d_{i-j} for each word i and j: (length, length)."""
        positions = torch.arange(length, device=self.distance.device)
        apart = positions[:, None] - positions
        return self.distance[torch.where(apart.abs() > self.reach, 2 * self.reach + 1, apart + self.reach)]

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        compared = self.compare(words)
        scores = compared @ compared.transpose(1, 2) + self.bias(words.shape[1])
        return torch.cat([words, masked_softmax(scores, mask[:, None]) @ words], dim=-1)


@register(
    "decomposable",
    name="Decomposable attention",
    kind="pair",
    paper="Parikh et al. 2016",
    source="M2.5[92] T5",
    year=2016,
    recipe=Recipe(optimizer="adagrad", lr=0.05, first_sum=0.1, batch_size=4),
    tiny={"hidden": 48},
    vectors_of_paper="GloVe",
    deviations=(
        "Unknown words share one vector, not 100 random ones.",
        "Weights start as PyTorch's layers do, not normal with deviation 0.01.",
    ),
    variants={
        "decomposable_intra": {
            "name": "Decomposable attention, intra-sentence",
            "recipe": Recipe(optimizer="adagrad", lr=0.025, first_sum=0.1, batch_size=4),
            "hyperparameters": {"intra": True},
        },
    },
)
class DecomposableAttention(PairEncoder):
    """Attend, compare, aggregate: only feed-forward nets, and no order of words unless ``intra``
    adds attention within each text.

    e_ij = F(a_i) . F(b_j) aligns each word a_i with beta_i = sum_j softmax_j(e_ij) b_j, and each
    b_j likewise; G compares [a_i, beta_i]; the comparisons of a text are summed; H reads both sums.
    A NULL word stands first in each text. The word vectors are fixed, of length 1, and projected
    without a bias; ``tuned`` trains them, for lack of pre-trained ones.
    """

    def __init__(
        self,
        width: int,
        hidden: int = 200,
        dropout: float = 0.2,
        intra: bool = False,
        reach: int = 10,
        tuned: bool = False,
    ):
        super().__init__()
        self.vectors = "tuned" if tuned else "fixed"
        self.null = nn.Parameter(torch.randn(width) / width**0.5)
        self.project = nn.Linear(width, hidden, bias=False)
        self.within = IntraAttention(hidden, reach, dropout) if intra else None
        word = 2 * hidden if intra else hidden
        self.attend = feed_forward(word, hidden, dropout)
        self.compare = feed_forward(2 * word, hidden, dropout)
        self.aggregate = feed_forward(2 * hidden, hidden, dropout)
        self.size = hidden

    def words(self, text: WordBatch) -> tuple[Tensor, Tensor]:
        """Vectors (B, 1 + T, size) of NULL and the words, and their mask."""
        vectors = torch.cat([self.null.expand(len(text.vectors), 1, -1), text.vectors], dim=1)
        mask = F.pad(text.mask, (1, 0), value=True)
        words = self.project(F.normalize(vectors, dim=-1))
        return (words if self.within is None else self.within(words, mask)), mask

    def summed(self, words: Tensor, aligned: Tensor, mask: Tensor) -> Tensor:
        """Sum over the real positions of the comparison of each word with what it is aligned to:
        (B, size)."""
        return (self.compare(torch.cat([words, aligned], dim=-1)) * mask[..., None]).sum(1)

    def forward(self, first: WordBatch, second: WordBatch) -> Tensor:
        (a, a_mask), (b, b_mask) = self.words(first), self.words(second)
        scores = self.attend(a) @ self.attend(b).transpose(1, 2)
        beta = masked_softmax(scores, b_mask[:, None]) @ b
        alpha = masked_softmax(scores.transpose(1, 2), a_mask[:, None]) @ a
        return self.aggregate(torch.cat([self.summed(a, beta, a_mask), self.summed(b, alpha, b_mask)], dim=1))
