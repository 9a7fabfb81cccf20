"""Contextual vectors of a left-to-right recurrent language model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.contextual_words import ContextualWords, KeptStill
from architectures.blocks.layer_mix import LayerMix
from architectures.blocks.objectives.next_word import NextWord
from architectures.blocks.parents_words import ParentsWords
from harness.errors import ModelError
from harness.registry import Recipe, register, register_input
from harness.saved_models.parents import copy_weights
from harness.task import Row
from harness.views.subwords import SubwordBatch
from harness.views.whole_words import WholeWords
from harness.views.words import PAD, UNKNOWN
from harness.views.words_and_characters import WordCharacterBatch, WordsAndCharacters

if TYPE_CHECKING:
    from harness.saved_models.model import KeptModel

SPREAD = 0.25
"""Vectors of words begin uniform in +- this."""


class StackedLSTM(KeptStill):
    """States (B, T, size) of each layer, which at a word know that word and those before it alone.
    Dropout acts on what a layer reads."""

    def __init__(self, width: int, size: int, layers: int, dropout: float):
        super().__init__()
        self.table = nn.Embedding(width, size)
        nn.init.uniform_(self.table.weight, -SPREAD, SPREAD)
        self.layers = nn.ModuleList(nn.LSTM(size, size, batch_first=True) for _ in range(layers))
        self.dropout = nn.Dropout(dropout)

    def forward(self, ids: Tensor) -> list[Tensor]:
        states = [self.table(ids)]
        for layer in self.layers:
            states.append(layer(self.dropout(states[-1]))[0])
        return states[1:]


class NextWordByTop(NextWord):
    """The probability of each word of a text by the highest state at the word before it."""

    @staticmethod
    def states(encoder: Any, pieces: SubwordBatch) -> Tensor:
        return encoder.dropout(encoder.states(pieces)[-1])


@register(
    "left_to_right_rnn",
    name="Left-to-right RNN vectors",
    kind="plm",
    paper="AIMA Fig. 25.11",
    source="R25.5.2",
    year=2020,
    parents={"weights": "left_to_right_rnn@text_mix"},
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=32, epochs=10, patience=3, clip=5.0),
    recipes={"text": Recipe(optimizer="adam", lr=0.001, batch_size=32, epochs=5, patience=5, clip=5.0)},
    tiny={"layers": 2, "hidden": 128, "dropout": 0.0, "vocabulary": 1000},
    deviations=(
        "Sizes, dropout and both recipes are our choices: the book states none.",
        "All words but the 9,995 commonest of the text mix are one unknown word.",
        "A pair is read as one text, of which the second part knows the first and not the other way round.",
    ),
)
class LeftToRightRNN(ContextualWords):
    """LSTM layers read a text from left to right and learn to foretell the next word; their states
    are then the vectors of a task's words in their text, blind to what follows.

    The book draws one layer and speaks of several: a task reads a trained mix of them
    (:class:`~architectures.blocks.layer_mix.LayerMix`). Above it stands the layer that scores
    classes, labels or spans alone.
    """

    learns = NextWordByTop

    def states(self, pieces: SubwordBatch) -> list[Tensor]:
        return self.network(pieces.ids)

    def __init__(
        self,
        width: int,
        view: WholeWords,
        layers: int = 2,
        hidden: int = 256,
        dropout: float = 0.1,
        tuned: bool = False,
        vocabulary: int = 10_000,
        max_length: int = 128,
        stride: int = 64,
    ):
        super().__init__(view, StackedLSTM(width, hidden, layers, dropout), layers, hidden, dropout, tuned)


@register_input(
    "left_to_right_words",
    name="Left-to-right RNN word vectors",
    paper="AIMA Fig. 25.11",
    source="R25.5.2",
    year=2020,
    parents={"inputs": "left_to_right_rnn@text_mix"},
    tiny={"hidden": 16, "dropout": 0.0},
    deviations=(
        "Sizes are those of left_to_right_rnn, and the dropout is our choice.",
        "A word is looked up as it is written; one that the language model does not know is its unknown word.",
        "Without a parent, as `archbench check` runs it, the network begins at random and is trained, and its words are"
        " those of the task in lower case.",
    ),
)
class LeftToRightWords(ParentsWords):
    """The vectors of left_to_right_rnn behind those of any architecture that reads words: a trained
    mix of the states of a language model that stays as it was learnt, through dropout.

    ``layers`` and ``hidden`` must be the parent's, with whose mark a text begins.
    """

    def __init__(self, view: WordsAndCharacters, layers: int = 2, hidden: int = 256, dropout: float = 0.1):
        super().__init__()
        self.depth, self.size = layers, hidden
        self.mix, self.dropout = LayerMix(layers), nn.Dropout(dropout)
        known = {word: number for number, word in enumerate(view.vocabulary.words, start=2)}
        self._begin(known, PAD, UNKNOWN, view.width)

    def _begin(self, words: Mapping[str, int], start: int, unknown: int, width: int) -> None:
        """Read by a network of so many pieces, whose ``words`` have these numbers."""
        self.know(words, unknown)
        self.start = start
        self.network = StackedLSTM(width, self.size, self.depth, 0.0)

    def inherit(self, role: str, parent: KeptModel, rows: Sequence[Row]) -> None:
        view = parent.view
        if not isinstance(view, WholeWords):
            raise ModelError(f"{parent.description.part.architecture} reads no whole words, as left_to_right_rnn does")
        ordered = dict(sorted(view.words.items(), key=lambda each: each[1]))
        self._begin(ordered, view.start, view.unknown, view.width)
        copy_weights(parent, self.network, "encoder.network")
        self.network.keep_still()

    def forward(self, words: WordCharacterBatch) -> Tensor:
        states = self.network(F.pad(self.found(words), (1, 0), value=self.start))
        return self.dropout(self.mix(states)[:, 1:])
