"""Bidirectional LSTM over word vectors and character LSTMs, with a conditional random field on
top."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.blocks.recurrent import reverse
from harness.kinds import Tagger, pool
from harness.registry import Recipe, register
from harness.views.words import UNKNOWN
from harness.views.words_and_characters import WordCharacterBatch, WordsAndCharacters


class CoupledLSTM(nn.Module):
    """LSTM from left to right whose forget gate is one minus its input gate and whose gates read
    the memory cell: (B, T, width) -> states (B, T, hidden).

    With i = sigmoid(W_i x + U_i h + V_i c + b_i), the cell is c' = (1 - i) * c + i * tanh(W_c x +
    U_c h + b_c), then o = sigmoid(W_o x + U_o h + V_o c' + b_o) and the state o * tanh(c'). The
    state and cell before the first vector are learned. Matrices start Glorot-uniform, biases and
    the first state at zero.
    """

    def __init__(self, width: int, hidden: int):
        super().__init__()
        self.from_input = nn.Linear(width, 3 * hidden)
        self.from_state = nn.Linear(hidden, 3 * hidden, bias=False)
        self.input_peephole = nn.Linear(hidden, hidden, bias=False)
        self.output_peephole = nn.Linear(hidden, hidden, bias=False)
        self.first_state = nn.Parameter(torch.zeros(hidden))
        self.first_cell = nn.Parameter(torch.zeros(hidden))
        for layer in (self.from_input, self.from_state):
            for gate in layer.weight.data.chunk(3):  # input gate, candidate and output gate
                nn.init.xavier_uniform_(gate)
        for layer in (self.input_peephole, self.output_peephole):
            nn.init.xavier_uniform_(layer.weight)
        nn.init.zeros_(self.from_input.bias)

    def forward(self, vectors: Tensor) -> Tensor:
        state, cell = (first.expand(len(vectors), -1) for first in (self.first_state, self.first_cell))
        states = []
        for read in self.from_input(vectors).unbind(1):
            enter, candidate, leave = (read + self.from_state(state)).chunk(3, dim=1)
            enter = torch.sigmoid(enter + self.input_peephole(cell))
            cell = (1 - enter) * cell + enter * torch.tanh(candidate)
            state = torch.sigmoid(leave + self.output_peephole(cell)) * torch.tanh(cell)
            states.append(state)
        return torch.stack(states, dim=1)


class CoupledBiLSTM(nn.Module):
    """A :class:`CoupledLSTM` in each direction: (B, T, width) -> both states of each position (B,
    T, ``size``). Padding reaches no state of a text."""

    def __init__(self, width: int, hidden: int):
        super().__init__()
        self.size = 2 * hidden
        self.forwards, self.backwards = CoupledLSTM(width, hidden), CoupledLSTM(width, hidden)

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        mirrored = self.backwards(reverse(vectors, mask))
        return torch.cat([self.forwards(vectors), reverse(mirrored, mask)], dim=-1)


class CharacterLSTM(nn.Module):
    """Characters (N, C) of N words to the end states (N, 2 * hidden) of an LSTM in each direction:
    what it has after the whole word."""

    def __init__(self, alphabet: int, size: int, hidden: int):
        super().__init__()
        self.vectors = nn.Embedding(alphabet, size, padding_idx=0)
        nn.init.xavier_uniform_(self.vectors.weight)
        self.recurrence = CoupledBiLSTM(size, hidden)

    def forward(self, characters: Tensor, mask: Tensor) -> Tensor:
        return pool(self.recurrence(self.vectors(characters), mask), mask, "ends")


@register(
    "lstm_crf_char",
    name="LSTM-CRF with character LSTM",
    kind="tag",
    paper="Lample et al. 2016",
    source="X4.5.3",
    year=2016,
    version=2,
    recipe=Recipe(optimizer="sgd", lr=0.01, batch_size=1, epochs=100, clip=5.0, vector_dims=100),
    tiny={"hidden": 12, "character_size": 8, "character_hidden": 6},
    vectors_of_paper="skip-n-gram vectors",
    deviations=(
        "Of a word longer than 30 characters the first 30 are read.",
        "Word vectors, the unknown word's too, start within +-0.25, transitions at zero; theirs are Glorot-uniform.",
        "Dev is asked after each pass; the authors' program asks it after every 1,000 sentences.",
        "Digits are kept; the paper reads each as 0 in English.",
    ),
)
class LSTMCRFCharacters(Tagger):
    """Each word's vector joined to the end states of a character BiLSTM, dropout, a BiLSTM, a tanh
    layer, and a linear-chain CRF. Both BiLSTMs have the cell of :class:`CoupledLSTM`.

    A word seen once in training is the unknown word there with probability ``unknown_rate``, its
    characters untouched: so the unknown word's vector is learnt, and the tagger comes to rely on
    spelling where it has nothing else. Scores are (B, T, labels).
    """

    # All words of the training text have vectors, also those seen once: being replaced at times is
    # how they train the unknown one.
    view = WordsAndCharacters(lower=False, min_count=1)
    decoder = "crf"
    # In training texts without a word that is seen once (a mini corpus), nothing is replaced.
    unused = ("unknown",)

    def __init__(
        self,
        width: int,
        labels: int,
        view: WordsAndCharacters,
        hidden: int = 100,
        character_size: int = 25,
        character_hidden: int = 25,
        dropout: float = 0.5,
        unknown_rate: float = 0.5,
    ):
        super().__init__()
        self.unknown_rate = unknown_rate
        self.unknown = nn.Parameter(torch.empty(width).uniform_(-0.25, 0.25))
        once = [
            False,
            False,
            *(count == 1 for count in view.vocabulary.counts),
        ]  # ids 0 and 1 are padding and the unknown word
        self.register_buffer("once", torch.tensor(once), persistent=False)
        self.spelling = CharacterLSTM(view.alphabet_size, character_size, character_hidden)
        self.dropout = nn.Dropout(dropout)
        self.recurrence = CoupledBiLSTM(width + 2 * character_hidden, hidden)
        self.hidden = nn.Linear(self.recurrence.size, hidden)
        self.emissions = nn.Linear(hidden, labels)
        for layer in (self.hidden, self.emissions):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def known(self, words: WordCharacterBatch) -> Tensor:
        """Vectors (B, T, width) of the words, the unknown word's in place of those that have none
        or lose theirs by lot."""
        unknown = words.ids == UNKNOWN
        if self.training:
            drawn = torch.rand(words.ids.shape, device=words.ids.device) < self.unknown_rate
            unknown = unknown | (self.once[words.ids] & drawn)
        return torch.where(unknown[..., None], self.unknown, words.vectors)

    def forward(self, words: WordCharacterBatch) -> Tensor:
        spelt = self.spelling(words.characters.flatten(0, 1), words.character_mask.flatten(0, 1)).unflatten(
            0, words.mask.shape
        )
        joined = self.dropout(torch.cat([self.known(words), spelt], dim=-1))
        return self.emissions(torch.tanh(self.hidden(self.recurrence(joined, words.mask))))
