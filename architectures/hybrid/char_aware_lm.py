"""Character-aware neural language model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from architectures.blocks.highway import Highway
from architectures.recurrent.rnn_lm import RecurrentLanguageModel
from harness.registry import Recipe, register
from harness.views.stream import Stream
from harness.views.words import Vocabulary, WordBatch

BEGIN, END, UNKNOWN = 1, 2, 3
"""Marks around a word's characters, and the only character of the unknown word; 0 is padding."""


@dataclass
class SpeltStream(Stream):
    """Streams of words without vectors: the network spells each row of the vocabulary itself."""

    embeds: ClassVar[bool] = False


@register(
    "char_aware_lm",
    name="Character-aware LM (CharCNN + highway + LSTM)",
    kind="lm",
    paper="Kim et al. 2016",
    source="X4.5.4 M2.9[140]",
    year=2016,
    recipe=Recipe(
        optimizer="sgd",
        lr=1.0,
        lr_schedule="plateau",
        batch_size=20,
        epochs=25,
        patience=25,
        clip=5.0,
        reduction="sentence",
        stretch=35,
    ),
    tiny={"hidden": 64, "dropout": 0.0, "spread": 0.2, "filters": 8, "most_filters": 24},
    deviations=(
        "The state begins anew with each text, behind a word without characters; the paper's goes on for ever.",
        "The rate is halved after an epoch that is not the best; the paper's, from the third on, after one that gains"
        " less than 1 in perplexity.",
        "The softmax is over all words; the paper's has two levels where words are many.",
    ),
    variants={
        "char_aware_lm_large": {
            "name": "Character-aware LM, large",
            "hyperparameters": {"widths": [1, 2, 3, 4, 5, 6, 7], "filters": 50, "highway": 2, "hidden": 650},
        },
    },
)
class CharacterAwareLanguageModel(RecurrentLanguageModel):
    """A word is spelt before it is read. Convolutions of several widths run over the vectors of its
    characters, tanh and the maximum over the word give y, and a highway network
    z = t * relu(W y + b) + (1 - t) * y the vector that the LSTM reads (Kim et al. 2016, equations 4
    to 8). Words are foretold as wholes.

    Windows run over the zeros behind a word too, as in the authors' code. Dropout acts between the
    layers of the LSTM and before the softmax. A convolution of width w has ``filters`` * w maps,
    ``most_filters`` at most. Gates of the highway begin with biases of -2, all other weights
    uniform in +-``spread``.
    """

    view = SpeltStream()

    def __init__(
        self,
        view: SpeltStream,
        symbols: int,
        characters: int = 15,
        widths: Sequence[int] = (1, 2, 3, 4, 5, 6),
        filters: int = 25,
        most_filters: int = 200,
        highway: int = 1,
        hidden: int = 300,
        layers: int = 2,
        dropout: float = 0.5,
        spread: float = 0.05,
    ):
        maps = [min(most_filters, filters * width) for width in widths]
        super().__init__(sum(maps), symbols, "lstm", hidden, layers, dropout, spread)
        alphabet, spelt = spellings(view.vocabulary, max(widths))
        self.register_buffer("spelt", spelt, persistent=False)
        self.characters = nn.Embedding(alphabet, characters, padding_idx=0)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(characters, count, width) for count, width in zip(maps, widths, strict=True)
        )
        self.highway = Highway(sum(maps), highway)
        for name, parameter in self.named_parameters():
            nn.init.uniform_(parameter, -spread, spread)
            if "gates" in name and name.endswith("bias"):
                nn.init.constant_(parameter, -2.0)
        with torch.no_grad():
            self.characters.weight[0] = 0

    def read(self, ids: Tensor) -> Tensor:
        """Vectors (B, T, size) of words from their characters."""
        characters = self.spelt[ids.flatten()]
        vectors = self.characters(characters).transpose(1, 2)
        maxima = [torch.tanh(convolution(vectors)).amax(2) for convolution in self.convolutions]
        return self.highway(torch.cat(maxima, dim=1)).view(*ids.shape, -1)

    def forward(self, words: WordBatch, state: Any) -> tuple[Tensor, Any]:
        return self.through(self.read(words.ids), state)


def spellings(vocabulary: Vocabulary, least: int) -> tuple[int, Tensor]:
    """The number of characters, and those of each row of a vocabulary (rows, longest), with a mark
    at both ends; ``least`` is the smallest width. Row 0, which stands before a text, has none."""
    characters = {character for word in vocabulary.words for character in word}
    known = {character: number for number, character in enumerate(sorted(characters), start=UNKNOWN + 1)}
    spelt = [[], [UNKNOWN], *([known[character] for character in word] for word in vocabulary.words)]
    rows = torch.zeros(len(spelt), max(least, 2 + max(map(len, spelt))), dtype=torch.long)
    for row, word in zip(rows, spelt, strict=True):
        row[: len(word) + 2] = torch.tensor([BEGIN, *word, END])
    return UNKNOWN + 1 + len(known), rows
