"""Pooling by several attentions, each with a weight for every feature of every word."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.blocks.shortcut_bilstm import ShortcutBiLSTM, SpelledWords
from harness.kinds import TextEncoder
from harness.layers.attention import masked_softmax
from harness.registry import Recipe, register
from harness.views.words_and_characters import WordCharacterBatch, WordsAndCharacters


class VectorAttention(nn.Module):
    """``heads`` means of states (B, T, size), whose weights differ by feature: (B, heads * size).

    Head i weighs the words by A_i = softmax(W2_i relu(W1_i H + b1_i) + b2_i) over the words, a
    number for each word and feature; v_i is the sum of A_i * H over the words. W1_i is (hidden,
    size).
    """

    def __init__(self, size: int, hidden: int, heads: int):
        super().__init__()
        self.heads = heads
        self.first = nn.Linear(size, heads * hidden)
        self.second = nn.Conv1d(heads * hidden, heads * size, 1, groups=heads)

    def weights(self, states: Tensor, mask: Tensor) -> Tensor:
        """A (B, heads, size, T), which sums to one over the words."""
        scores = self.second(torch.relu(self.first(states)).transpose(1, 2))
        return masked_softmax(scores.unflatten(1, (self.heads, -1)), mask[:, None, None])

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        return torch.einsum("bhst,bts->bhs", self.weights(states, mask), states).flatten(1)

    def likeness(self) -> Tensor:
        """Sum over pairs of heads of max(0, 1 - ||W1_i - W1_j||_F^2)."""
        matrices = self.first.weight.unflatten(0, (self.heads, -1))
        one, other = torch.combinations(torch.arange(self.heads, device=matrices.device)).unbind(1)
        return torch.relu(1 - (matrices[one] - matrices[other]).square().sum((1, 2))).sum()


@register(
    "generalized_pooling",
    name="Generalized pooling",
    kind="text",
    paper="Chen et al. 2018",
    source="M2.5[93] T5",
    year=2018,
    recipe=Recipe(
        optimizer="adam", lr=0.0004, batch_size=128, patience=7, clip=10.0, lr_schedule="plateau", factor=0.5
    ),
    tiny={"hidden": 12, "heads": 2, "filters": 6},
    vectors_of_paper="GloVe",
    deviations=(
        (
            "One hidden ReLU layer, as wide as a text's vector and without dropout, classifies a pair from [u, v,"
            " |u-v|, u*v]; the paper has two of 600 with dropout, the second of which reads the first one's input too."
        ),
        "A halved rate goes on from the last weights, not from the best so far.",
        "Characters are those of the training texts, not a list of 95; of a word the first 30 are read.",
        "Weights start as PyTorch's layers do, not from a narrow Gaussian.",
    ),
)
class GeneralizedPooling(TextEncoder):
    """Three BiLSTMs with shortcuts over words and their spelling, and vector-based attention of
    ``heads`` heads over the top states: (B, ``heads`` * 2 * ``hidden``).

    ``penalty`` times the likeness of the heads' first matrices joins the loss: it ends at a squared
    distance of one. Word vectors are fixed. Dropout acts on the words and their spelling. Slow,
    because of 600 units in each direction of each layer.
    """

    view = WordsAndCharacters(lower=False)
    vectors = "fixed"

    def __init__(
        self,
        width: int,
        view: WordsAndCharacters,
        hidden: int = 600,
        layers: int = 3,
        heads: int = 6,
        character_size: int = 15,
        filters: int = 100,
        windows: tuple = (1, 3, 5),
        dropout: float = 0.5,
        penalty: float = 0.01,
    ):
        super().__init__()
        self.penalty = penalty
        self.words = SpelledWords(width, view.alphabet_size, character_size, filters, windows)
        self.dropout = nn.Dropout(dropout)
        self.recurrence = ShortcutBiLSTM(self.words.size, hidden, layers)
        self.attention = VectorAttention(self.recurrence.size, hidden, heads)
        self.size = heads * self.recurrence.size

    def auxiliary_loss(self) -> Tensor:
        # Once a step, also where a pair of texts passes twice.
        return self.penalty * self.attention.likeness()

    def forward(self, words: WordCharacterBatch) -> Tensor:
        states, _ = self.recurrence(self.dropout(self.words(words)), words.mask)
        return self.attention(states, words.mask)
