"""Vectors of words that a convolution makes from their characters."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from architectures.blocks.characters import CharacterConvolution
from harness.kinds import InputSource
from harness.registry import register_input
from harness.views.words_and_characters import WordCharacterBatch, WordsAndCharacters


@register_input(
    "char_cnn_words",
    name="Character CNN word vectors",
    paper="Kim et al. 2016; Ma & Hovy 2016",
    source="X4.5.4 eq.4.87",
    year=2016,
    tiny={"character_size": 8, "filters": 8, "dropout": 0.0},
    deviations=(
        "Sizes are those of Ma & Hovy's tagger; Kim et al.'s language model has windows of one to six characters and a"
        " highway network behind them.",
        "Marks stand at both ends of a word, as in Kim et al.'s; in Ma & Hovy's there are zeros alone.",
        "Of a word longer than 30 characters the first 30 are read.",
    ),
)
class CharacterCNNWords(InputSource):
    """max over places of tanh(W [c_i; ...; c_(i+k-1)] + b): the vectors c of a word's characters
    and of the marks around them, dropout, a convolution with windows of k = ``window``, tanh, and
    the maximum over the windows that hold something of the word.

    Ma & Hovy 2016, section 2.1; with marks as in Kim et al. 2016, section 2.
    """

    def __init__(
        self,
        view: WordsAndCharacters,
        character_size: int = 30,
        filters: int = 30,
        window: int = 3,
        dropout: float = 0.5,
    ):
        super().__init__()
        self.begin = view.alphabet_size
        self.spelling = CharacterConvolution(view.alphabet_size + 2, character_size, filters, window, dropout)
        self.size = filters

    def forward(self, words: WordCharacterBatch) -> Tensor:
        return self.spelling(*marked(words.characters, words.character_mask, self.begin))


def marked(characters: Tensor, mask: Tensor, begin: int) -> tuple[Tensor, Tensor]:
    """Characters (..., C + 2) with the mark ``begin`` before those of each word and ``begin`` + 1
    behind them, and their mask."""
    lengths = mask.sum(-1, keepdim=True)
    places = torch.arange(mask.shape[-1] + 2, device=mask.device)
    spelt = F.pad(characters, (1, 1)).masked_fill(places == 0, begin).masked_fill(places == lengths + 1, begin + 1)
    return spelt, places < lengths + 2
