"""ELMo."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.contextual_words import ContextualWords, KeptStill
from architectures.blocks.highway import Highway
from architectures.blocks.layer_mix import LayerMix
from architectures.blocks.recurrent import reverse
from architectures.vectors.char_cnn_words import marked
from harness.kinds import InputSource
from harness.layers.noise import Noise
from harness.problems.language_model import Surprise, known_by_heart
from harness.problems.text_objective import Foretold, TextObjective, batches, log_shares, summed
from harness.registry import Recipe, register, register_input
from harness.saved_models.parents import copy_weights
from harness.task import Row
from harness.views.spelt_words import BEGIN, CHARACTERS, END, MARKS, OTHER, SpeltBatch, SpeltWords, number_of
from harness.views.subwords import Subwords
from harness.views.words_and_characters import WordCharacterBatch, WordsAndCharacters

if TYPE_CHECKING:
    from harness.saved_models.model import KeptModel

GATE_BIAS = -2.0
"""Gates of the highway begin with this bias, and let vectors pass."""


class SpeltVectors(nn.Module):
    """Characters (..., C) of words to vectors (..., size): convolutions of widths 1, 2, ... with so
    many ``filters`` each, the maximum over the windows that begin in the word and end in it where
    they fit, ReLU, highway layers and a projection."""

    def __init__(self, characters: int, filters: Sequence[int], highway: int, size: int):
        super().__init__()
        self.vectors = nn.Embedding(CHARACTERS, characters, padding_idx=0)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(characters, count, width) for width, count in enumerate(filters, start=1)
        )
        self.highway = Highway(sum(filters), highway, GATE_BIAS)
        self.projection = nn.Linear(sum(filters), size)

    def forward(self, characters: Tensor) -> Tensor:
        flat = characters.flatten(0, -2).long()
        flat = F.pad(flat, (0, max(0, len(self.convolutions) - flat.shape[1])))
        lengths, vectors = (flat > 0).sum(1, keepdim=True), self.vectors(flat).transpose(1, 2)
        maxima = []
        for width, convolution in enumerate(self.convolutions, start=1):
            maps = convolution(vectors)
            inside = torch.arange(maps.shape[2], device=maps.device) <= (lengths - width).clamp(min=0)
            maxima.append(maps.masked_fill(~inside[:, None], -torch.inf).amax(2))
        return self.projection(self.highway(torch.relu(torch.cat(maxima, 1)))).view(*characters.shape[:-1], -1)


class TwoWayLanguageModel(KeptStill):
    """Characters (B, T, C) of words to layers (B, T, 2 ``size``), forward states before backward
    ones: the vectors of the words, twice, and the states of LSTMs with projections, to which from
    the second layer on what they read is added. The two directions share the vectors of words and
    nothing else. Dropout acts on what a layer reads, and so on what is added."""

    def __init__(
        self, characters: int, filters: Sequence[int], highway: int, cells: int, size: int, layers: int, dropout: float
    ):
        super().__init__()
        self.words = SpeltVectors(characters, filters, highway, size)
        self.forwards, self.backwards = (
            nn.ModuleList(nn.LSTM(size, cells, proj_size=size, batch_first=True) for _ in range(layers))
            for _ in range(2)
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, characters: Tensor, mask: Tensor) -> list[Tensor]:
        words = self.words(characters)
        ahead = self._through(self.forwards, words)
        behind = [reverse(states, mask) for states in self._through(self.backwards, reverse(words, mask))]
        return [torch.cat(both, -1) for both in zip(ahead, behind, strict=True)]

    def _through(self, layers: nn.ModuleList, words: Tensor) -> list[Tensor]:
        found = [words]
        for number, layer in enumerate(layers):
            read = self.dropout(found[-1])
            states = layer(read)[0]
            found.append(states + read if number else states)
        return found


class BothWays(TextObjective):
    """The probability of each word by the highest forward state at the word before it, and by the
    highest backward one at the word behind it; one softmax serves both. The beginning of a text is
    foretold backward, its end forward."""

    unit = "words from both sides"

    def __init__(self, encoder: Any):
        super().__init__(encoder)
        self.output = nn.Linear(encoder.size // 2, encoder.view.width)

    def forward(self, encoder: Any, pieces: SpeltBatch, noise: Noise) -> Foretold:
        ahead, behind = encoder.network.dropout(encoder.states(pieces)[-1]).chunk(2, -1)
        between = pieces.mask[:, 1:]
        asked = (ahead[:, :-1], pieces.ids[:, 1:]), (behind[:, 1:], pieces.ids[:, :-1])
        logs = [-F.cross_entropy(self.output(s[between]), ids[between], reduction="none") for s, ids in asked]
        texts = between.nonzero()[:, 0]
        return Foretold(torch.cat(logs), torch.cat([texts, texts]))

    @classmethod
    def floor(cls, view: Subwords, train: Sequence[Row], rows: Sequence[Row]) -> list[Surprise]:
        """Each word by its share of the words of the training texts; a text begins as often as it
        ends."""
        logs, found = log_shares(view, train), []
        logs[view.start] = logs[view.separator]
        for pieces in batches(view, rows):
            between = pieces.mask[:, 1:]
            both = torch.cat([logs[pieces.ids[:, 1:][between]], logs[pieces.ids[:, :-1][between]]])
            texts = between.nonzero()[:, 0]
            found += summed(Foretold(both, torch.cat([texts, texts])), len(between))
        return found

    @classmethod
    def by_heart(cls, view: Subwords, rows: Sequence[Row]) -> list[Surprise]:
        """From neither side does anybody know which text it is before the first word."""
        texts = [[*map(str, p.ids[row, :n].tolist())] for p in batches(view, rows) for row, n in enumerate(p.lengths)]
        sides = known_by_heart([text[1:] for text in texts]), known_by_heart([text[-2::-1] for text in texts])
        return [[a + b, m + n] for (a, m), (b, n) in zip(*sides, strict=True)]


@register(
    "elmo",
    name="ELMo, small",
    kind="plm",
    paper="Peters et al. 2018",
    source="M1[4] R25.5.2",
    year=2018,
    version=2,
    parents={"weights": "elmo@text_mix"},
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=32, epochs=10, patience=3, clip=5.0),
    recipes={
        "text": Recipe(optimizer="adagrad", lr=0.2, first_sum=0.0025, batch_size=32, epochs=5, patience=5, clip=0.5),
    },
    tiny={
        "characters": 8,
        "filters": [16, 16, 32],
        "highway": 1,
        "cells": 128,
        "projection": 64,
        "dropout": 0.0,
        "lm_dropout": 0.0,
        "vocabulary": 1000,
    },
    deviations=(
        "LSTMs have 512 cells and projections to 128, not 4,096 and 512, and words filters of widths up to 5, not 7.",
        (
            "A word is foretold by a softmax over the 10,000 commonest, not over samples of 793,471; its first 20"
            " characters are read, one beyond Latin-1 as one unknown, not its bytes, of which there are at most 50."
        ),
        (
            "Pre-training makes five passes over the text mix of 17 million words, each stretch of 126 words from a"
            " state of zeros; the paper makes ten over 800 million, and carries states on."
        ),
        "Weights begin as PyTorch's do; in the authors' code characters within +-1, filters within +-0.05, and matrices"
        " normal by their number of inputs. A step reads 32 stretches, theirs 384 of 20 words.",
        "Filters see no padding behind a word, and cells and states are not cut at 3; in the authors' code they are.",
        "The LSTMs' forget gates begin with small biases; in the authors' code with 1.",
        (
            "Alone it has no more above the mixed layers than what scores classes, labels or spans, and one recipe; the"
            " paper puts them into each task's own system, as `--inputs elmo_words` does."
        ),
        "The weights of the mix have no penalty, and the network is not tuned on the words of a task first.",
        "A pair is read as one text.",
    ),
)
class ELMo(ContextualWords):
    """Vectors of words from their characters, and the states of a forward and of a backward
    language model above them, which learnt from plain text and stay as they are: a task reads
    gamma * sum of softmax(s)_j h_j over the three layers (Peters et al. 2018, equation 1). The
    vector of a text is the maximum over its words and marks.

    ``dropout`` acts on the mix, ``lm_dropout`` in the language models while they are trained.
    """

    view = SpeltWords()
    view_settings: ClassVar[dict[str, str]] = ContextualWords.view_settings | {"word_length": "word_length"}
    learns = BothWays
    pooling = "max"
    ordinary_dropouts = ("dropout", "lm_dropout")

    def __init__(
        self,
        width: int,
        view: SpeltWords,
        characters: int = 16,
        filters: Sequence[int] = (32, 32, 64, 128, 128),
        highway: int = 2,
        cells: int = 512,
        projection: int = 128,
        layers: int = 2,
        dropout: float = 0.5,
        lm_dropout: float = 0.1,
        tuned: bool = False,
        vocabulary: int = 10_000,
        word_length: int = 20,
        max_length: int = 128,
        stride: int = 64,
    ):
        network = TwoWayLanguageModel(characters, filters, highway, cells, projection, layers, lm_dropout)
        super().__init__(view, network, layers + 1, 2 * projection, dropout, tuned)

    def states(self, pieces: SpeltBatch) -> list[Tensor]:
        return self.network(pieces.characters, pieces.mask)


@register_input(
    "elmo_words",
    name="ELMo word vectors",
    paper="Peters et al. 2018",
    source="M1[4] R25.5.2",
    year=2018,
    parents={"inputs": "elmo@text_mix"},
    tiny={"characters": 8, "filters": [8, 8], "highway": 1, "cells": 16, "projection": 8, "dropout": 0.0},
    deviations=(
        "Sizes are those of elmo, and what deviates there deviates here.",
        "They stand beside the vectors of words that a system reads, and not before its output as well.",
        "A character that the task's training texts never show is one unknown.",
        "Without a parent, as `archbench check` runs it, the network begins at random and is trained.",
    ),
)
class ELMoWords(InputSource):
    """ELMo's vectors behind those of any architecture that reads words: the trained mix of the
    layers of language models that stay as they were learnt, through dropout.

    Sizes, and ``word_length``, must be the parent's.
    """

    takes = ("inputs",)

    def __init__(
        self,
        view: WordsAndCharacters,
        characters: int = 16,
        filters: Sequence[int] = (32, 32, 64, 128, 128),
        highway: int = 2,
        cells: int = 512,
        projection: int = 128,
        layers: int = 2,
        word_length: int = 20,
        dropout: float = 0.5,
    ):
        super().__init__()
        self.size, self.word_length = 2 * projection, word_length
        alphabet = [0, OTHER, *map(number_of, view.characters.words)]
        self.register_buffer("alphabet", torch.tensor(alphabet), persistent=False)
        self.network = TwoWayLanguageModel(characters, filters, highway, cells, projection, layers, 0.0)
        self.mix, self.dropout = LayerMix(layers + 1), nn.Dropout(dropout)

    def inherit(self, role: str, parent: KeptModel, rows: Sequence[Row]) -> None:
        copy_weights(parent, self.network, "encoder.network")
        self.network.keep_still()

    def forward(self, words: WordCharacterBatch) -> Tensor:
        characters, mask = framed(self.spelt(words), words.mask)
        return self.dropout(self.mix(self.network(characters, mask))[:, 1:-1])

    def spelt(self, words: WordCharacterBatch) -> Tensor:
        """The characters (B, T, C) of words as the parent numbers them, with marks around them."""
        characters, mask = (each[..., : self.word_length] for each in (words.characters, words.character_mask))
        return marked(self.alphabet[characters], mask, BEGIN)[0]


def framed(characters: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Characters (B, T + 2, C) of texts with the marks of beginning and end around their words, and
    their mask."""
    lengths = mask.sum(1)
    framed = F.pad(characters * mask[..., None], (0, 0, 1, 1))
    texts = torch.arange(len(framed), device=framed.device)
    for places, mark in ((torch.zeros_like(lengths), "[CLS]"), (lengths + 1, "[SEP]")):
        framed[texts, places, :3] = torch.tensor([BEGIN, MARKS[mark], END], device=framed.device)
    return framed, torch.arange(framed.shape[1], device=framed.device) < lengths[:, None] + 2
