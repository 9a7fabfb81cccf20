"""Convolutions from characters to words and from words to the text."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from harness.kinds import TextEncoder, pool
from harness.registry import Recipe, register
from harness.views.words_and_characters import WordCharacterBatch, WordsAndCharacters


class CentredMaxima(nn.Module):
    """max_t (W [x_(t-(k-1)/2); ...; x_(t+(k-1)/2)] + b) for each of ``maps`` filters, with zero
    vectors beside the sequence and no activation: (N, T, width) -> (N, maps)."""

    def __init__(self, width: int, maps: int, window: int):
        super().__init__()
        self.convolution = nn.Conv1d(width, maps, window, padding="same")

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        maps = self.convolution((vectors * mask[..., None]).transpose(1, 2))
        return pool(maps.transpose(1, 2), mask, "max")


@register(
    "char_scnn",
    name="Character-to-sentence CNN (CharSCNN)",
    kind="text",
    paper="Santos & Gatti 2014",
    source="X4.5.1",
    year=2014,
    recipe=Recipe(optimizer="sgd", lr=0.02, batch_size=1, vector_dims=30),
    tiny={"character_maps": 6, "maps": 12, "hidden": 12},
    vectors_of_paper="Skip-gram, trained on Wikipedia",
    deviations=(
        "Trained on sentences alone; the paper's figures for the Stanford treebank are with its phrases.",
        "Zero vectors stand beside words and sentences; the paper's padding has a vector that is learnt.",
        "Words end after 30 characters.",
        "The rate stays at 0.02; whether the paper's falls is not known to us.",
    ),
)
class CharSCNN(TextEncoder):
    """Each word's vector joined with one of its characters, then a vector of the sentence: twice a
    convolution over centred windows and the maximum of each map, without an activation between.

    A word is [r_wrd; r_wch] with r_wch from its characters, in their case. Above the sentence's
    vector stands a tanh layer, (B, ``hidden``); the harness's layer gives the scores.
    """

    view = WordsAndCharacters(word_length=30)

    def __init__(
        self,
        width: int,
        view: WordsAndCharacters,
        character_size: int = 5,
        character_window: int = 3,
        character_maps: int = 10,
        window: int = 5,
        maps: int = 300,
        hidden: int = 300,
    ):
        super().__init__()
        self.characters = nn.Embedding(view.alphabet_size, character_size)
        self.spelling = CentredMaxima(character_size, character_maps, character_window)
        self.sentence = CentredMaxima(width + character_maps, maps, window)
        self.hidden = nn.Linear(maps, hidden)
        self.size = hidden

    def forward(self, words: WordCharacterBatch) -> Tensor:
        characters = self.characters(words.characters.flatten(0, 1))
        spelt = self.spelling(characters, words.character_mask.flatten(0, 1)).unflatten(0, words.mask.shape)
        return torch.tanh(self.hidden(self.sentence(torch.cat([words.vectors, spelt], dim=-1), words.mask)))
