"""Bidirectional LSTM over word vectors and character convolutions, with a conditional random field on top."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from architectures.blocks.recurrent import Recurrent
from harness.kinds import Tagger
from harness.registry import Recipe, register
from harness.views.words_and_characters import WordCharacterBatch, WordsAndCharacters


class CharacterConvolution(nn.Module):
    """Characters (N, C) of N words to a vector (N, filters) each: vectors, dropout, convolution, tanh, the maximum over the word.

    The word is lengthened by zero vectors at both ends, so that each of its characters stands at every place of a window.
    """

    def __init__(self, alphabet: int, size: int, filters: int, window: int, dropout: float):
        super().__init__()
        limit = math.sqrt(3 / size)
        weights = torch.empty(alphabet, size).uniform_(-limit, limit)
        weights[0] = 0
        self.vectors = nn.Embedding.from_pretrained(weights, freeze=False, padding_idx=0)
        self.dropout = nn.Dropout(dropout)
        self.convolution = nn.Conv1d(size, filters, window, padding=window - 1)

    def forward(self, characters: Tensor, mask: Tensor) -> Tensor:
        maps = self.convolution(self.dropout(self.vectors(characters)).transpose(1, 2))
        # Windows that hold nothing of the word are those behind its last character and the zeros that lengthen it.
        windows = mask.sum(1) + self.convolution.kernel_size[0] - 1
        inside = torch.arange(maps.shape[-1], device=maps.device) < windows[:, None]
        return torch.tanh(maps.masked_fill(~inside[:, None], -torch.inf).amax(-1))


@register(
    "lstm_cnns_crf",
    name="BiLSTM-CNNs-CRF",
    kind="tag",
    paper="Ma & Hovy 2016",
    source="X4.5.3",
    year=2016,
    recipe=Recipe(
        optimizer="sgd",
        lr=0.015,
        momentum=0.9,
        batch_size=10,
        epochs=50,
        clip=5.0,
        lr_schedule="inverse_epoch",
        decay=0.05,
        vector_dims=100,
    ),
    tiny={"hidden": 12, "character_size": 8, "filters": 8},
    deviations=("Without --vectors the word vectors start at random, not from GloVe.",),
)
class BiLSTMCNNsCRF(Tagger):
    """Each word's vector joined to what a convolution makes of its characters, a BiLSTM over the sentence, a linear-chain CRF.

    Dropout acts on the character vectors before the convolution and on the input and the output of the BiLSTM.
    """

    view = WordsAndCharacters()
    decoder = "crf"

    def __init__(
        self,
        width: int,
        labels: int,
        view: WordsAndCharacters,
        hidden: int = 200,
        character_size: int = 30,
        filters: int = 30,
        window: int = 3,
        dropout: float = 0.5,
    ):
        super().__init__()
        self.spelling = CharacterConvolution(view.alphabet_size, character_size, filters, window, dropout)
        self.recurrence = Recurrent("lstm", width + filters, hidden, bidirectional=True)
        self.dropout = nn.Dropout(dropout)
        self.emissions = nn.Linear(self.recurrence.size, labels)

    def forward(self, words: WordCharacterBatch) -> Tensor:
        spelt = self.spelling(words.characters.flatten(0, 1), words.character_mask.flatten(0, 1)).unflatten(0, words.mask.shape)
        joined = self.dropout(torch.cat([words.vectors, spelt], dim=-1))
        return self.emissions(self.dropout(self.recurrence(joined, words.mask)))
