"""Stacked bidirectional LSTMs whose input gates say how much each word weighs in the sentence."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.recurrent import reverse
from architectures.blocks.shortcut_bilstm import ShortcutBiLSTM, SpelledWords
from harness.kinds import TextEncoder, pool
from harness.registry import Recipe, register
from harness.views.words_and_characters import WordCharacterBatch, WordsAndCharacters


def input_gates(layer: nn.LSTM, vectors: Tensor, states: Tensor) -> Tensor:
    """i_t = sigmoid(W x_t + U h_(t-1) + b) (B, T, hidden) of a one-way layer that made ``states``
    of ``vectors``."""
    before = F.pad(states[:, :-1], (0, 0, 1, 0))
    gate = slice(layer.hidden_size)
    read = F.linear(vectors, layer.weight_ih_l0[gate], layer.bias_ih_l0[gate])
    return torch.sigmoid(read + F.linear(before, layer.weight_hh_l0[gate], layer.bias_hh_l0[gate]))


@register(
    "stacked_bilstm_gated",
    name="Stacked BiLSTM with gated attention",
    kind="text",
    paper="Chen et al. 2017 (RepEval)",
    source="M-T5[224]",
    year=2017,
    recipe=Recipe(optimizer="adam", lr=0.0004, batch_size=32, patience=7, clip=10.0, lr_schedule="plateau", factor=0.5),
    tiny={"hidden": 12, "filters": 6},
    vectors_of_paper="GloVe",
    deviations=(
        (
            "One hidden ReLU layer, as wide as a text's vector and without dropout, classifies a pair from [u, v,"
            " |u-v|, u*v]; the paper has two of 600 with dropout, the second of which reads the first one's input too."
        ),
        "Each BiLSTM reads the states of the one below and the words, as in the authors' code, not those of all below.",
        "A halved rate goes on from the last weights, not from the best so far.",
        "Characters are those of the training texts, not a list of 95; of a word the first 30 are read.",
        "Weights start as PyTorch's layers do, not from a narrow Gaussian.",
        "The maximum is over real words; in the authors' code zeros at padding count.",
    ),
)
class StackedBiLSTMGated(TextEncoder):
    """[mean; maximum; gated mean] of the top states of three BiLSTMs with shortcuts: (B, 6 *
    ``hidden``).

    In the gated mean a word weighs as much as the norm of the top layer's input gates at it, both
    directions' together, divided by the sum of all words' norms. The words are joined to their
    spelling and their vectors are fixed. Dropout acts on what the recurrences read. Slow, because
    of 600 units in each direction of each layer.
    """

    view = WordsAndCharacters(lower=False)
    vectors = "fixed"

    def __init__(
        self,
        width: int,
        view: WordsAndCharacters,
        hidden: int = 600,
        layers: int = 3,
        character_size: int = 15,
        filters: int = 100,
        windows: tuple = (1, 3, 5),
        dropout: float = 0.5,
    ):
        super().__init__()
        self.words = SpelledWords(width, view.alphabet_size, character_size, filters, windows)
        self.dropout = nn.Dropout(dropout)
        self.recurrence = ShortcutBiLSTM(self.words.size, hidden, layers)
        self.size = 3 * self.recurrence.size

    def weights(self, read: Tensor, states: Tensor, mask: Tensor) -> Tensor:
        """Weight (B, T) of each word, from the gates of the top layer that made ``states`` of
        ``read``."""
        top = self.recurrence.layers[-1]
        left, right = states.chunk(2, dim=-1)
        forwards = input_gates(top.forwards[0], read, left)
        backwards = reverse(input_gates(top.backwards[0], reverse(read, mask), reverse(right, mask)), mask)
        norms = torch.linalg.vector_norm(torch.cat([forwards, backwards], dim=-1), dim=-1) * mask
        return norms / norms.sum(1, keepdim=True)

    def forward(self, words: WordCharacterBatch) -> Tensor:
        mask = words.mask
        states, read = self.recurrence(self.dropout(self.words(words)), mask)
        gated = (self.weights(read, states, mask)[..., None] * states).sum(1)
        return torch.cat([pool(states, mask, "mean"), pool(states, mask, "max"), gated], dim=1)
