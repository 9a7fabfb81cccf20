"""LSTMs that begin with what a sequence autoencoder or a language model learnt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from architectures.blocks.objectives.next_word import NextWord
from harness.kinds import Parent, PretrainedEncoder
from harness.layers.noise import Noise
from harness.layers.pooling import pool
from harness.problems.language_model import Surprise
from harness.problems.text_objective import Foretold
from harness.registry import Recipe, register
from harness.saved_models.parents import copy_weights
from harness.task import Row
from harness.views.subwords import SubwordBatch, Subwords
from harness.views.whole_words import WholeWords

SPREAD = 0.25
"""Vectors of words begin uniform in +- this."""


class NextWordByLSTM(NextWord):
    """Each word of a text, given those before it, by the state of the LSTM at the word before."""

    def __init__(self, encoder: Any):
        super().__init__(encoder, encoder.lstm.hidden_size)

    @staticmethod
    def states(encoder: Any, pieces: SubwordBatch) -> Tensor:
        return encoder.read(encoder.table(pieces.ids))


class Retold(NextWordByLSTM):
    """Each word of a text that was read, given those before it: x_1 ... x_n and the end of the text
    are told by the states of the LSTM that goes on from the end, and reads x_1 ... x_n again.

    The network that reads and the one that tells are one, with one table of words; all that the
    second knows of the text is the state of the first at its end.
    """

    unit = "words of a text that was read"
    packs = False

    def forward(self, encoder: Any, pieces: SubwordBatch, noise: Noise) -> Foretold:
        places = torch.arange(2 * pieces.ids.shape[1] - 2, device=pieces.ids.device)
        again = places - pieces.lengths[:, None] + 1  # place in the text that is read again; 0 at its end
        read = torch.where(again > 0, again, places).clamp(max=pieces.ids.shape[1] - 1)
        states = encoder.read(encoder.table(pieces.ids.gather(1, read)))
        asked = (again >= 0) & (again < pieces.lengths[:, None] - 1)
        told = pieces.ids.gather(1, (again + 1).clamp(0, pieces.ids.shape[1] - 1))
        return self.scored(states, told, asked)

    @classmethod
    def by_heart(cls, view: Subwords, rows: Sequence[Row]) -> list[Surprise]:
        """Certainty: the text itself is read."""
        return [[0.0, 1] for _ in rows]


@register(
    "sa_lstm",
    name="LSTM after a sequence autoencoder",
    kind="text",
    paper="Dai & Le 2015",
    source="M2.11[162]",
    year=2015,
    parents={"weights": "sa_lstm@text_mix"},
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=32, epochs=10, patience=3, clip=5.0),
    recipes={"text": Recipe(optimizer="adam", lr=0.001, batch_size=32, epochs=5, patience=5, clip=5.0)},
    tiny={"embedding": 64, "hidden": 128, "dense": 32, "word_dropout": 0.0, "dropout": 0.0, "vocabulary": 1000},
    deviations=(
        "A quarter of the paper's widths, which are 512, 1,024 and 512.",
        "Optimiser, rates and both dropouts of one recipe for all tasks; the paper chooses dropouts on dev.",
        (
            "Pre-training makes five passes over the text mix in batches of 32; the paper makes 500,000 steps of 128,"
            " over the texts of the task and others of its sort."
        ),
        (
            "A text is cut at 126 words, and gradients go through all of them; the paper goes 400 words back through"
            " long ones."
        ),
        "The paper clips the outputs of memory cells as well as gradients.",
        "All words but the 9,995 commonest of the text mix are one unknown word.",
        "Of the paper's further forms, a loss at each word that grows and joint training are left out.",
        "The layer above the last state is linear; in the authors' later program it has ReLU.",
        "That program cuts gradients of all but words at 1, and tunes at 0.0005 in batches of 64; it drops half of the"
        " numbers of words' vectors, in pre-training too.",
    ),
)
class SequenceAutoencoderLSTM(PretrainedEncoder):
    """An LSTM that has learnt to tell a text again after reading it reads the text of a task; a
    linear layer over its last state is the vector of the text.

    The vectors of words and the LSTM begin with the weights of the parent, whose output layer stays
    behind, and all of it is tuned. ``word_dropout`` drops whole vectors of words, ``dropout``
    numbers of the layer; both act in tuning alone.
    """

    view = WholeWords()
    view_settings: ClassVar[dict[str, str]] = {"size": "vocabulary", "max_length": "max_length"}
    learns: ClassVar[Any] = Retold
    ordinary_dropouts = ("word_dropout", "dropout")
    unused = ("dense",)  # plain text is told by the states themselves

    @classmethod
    def can_answer(cls, type: str) -> bool:
        """True for plain text, and for the classification of texts, which the paper is about."""
        return type in ("text", "classify")

    def __init__(
        self,
        width: int,
        view: WholeWords,
        embedding: int = 128,
        hidden: int = 256,
        dense: int = 128,
        word_dropout: float = 0.2,
        dropout: float = 0.5,
        vocabulary: int = 10_000,
        max_length: int = 128,
    ):
        super().__init__()
        self.view = view
        self.table = nn.Embedding(width, embedding)
        nn.init.uniform_(self.table.weight, -SPREAD, SPREAD)
        self.lstm = nn.LSTM(embedding, hidden, batch_first=True)
        self.dense = nn.Linear(hidden, dense)
        self.word_dropout, self.dropout = nn.Dropout1d(word_dropout), nn.Dropout(dropout)
        self.size = dense

    def inherit(self, role: str, parent: Parent, rows: Sequence[Row]) -> None:
        copy_weights(parent, self.table, "encoder.table")
        copy_weights(parent, self.lstm, "encoder.lstm")

    def read(self, vectors: Tensor) -> Tensor:
        """States (B, T, hidden) of words with these vectors (B, T, embedding)."""
        return self.lstm(vectors)[0]

    def forward(self, pieces: SubwordBatch) -> Tensor:
        return self.dense(self.read(self.word_dropout(self.table(pieces.ids))))

    def vector(self, pieces: SubwordBatch) -> Tensor:
        return self.dropout(pool(self(pieces), pieces.mask, "last"))


@register(
    "lm_lstm",
    name="LSTM after a language model",
    kind="text",
    paper="Dai & Le 2015",
    source="M2.11[162]",
    year=2015,
    parents={"weights": "lm_lstm@text_mix"},
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=32, epochs=10, patience=3, clip=5.0),
    recipes={"text": Recipe(optimizer="adam", lr=0.001, batch_size=32, epochs=5, patience=5, clip=5.0)},
    tiny={"embedding": 64, "hidden": 128, "dense": 32, "word_dropout": 0.0, "dropout": 0.0, "vocabulary": 1000},
    deviations=(
        "A quarter of the paper's widths, which are 512, 1,024 and 512.",
        "Optimiser, rates and both dropouts of one recipe for all tasks; the paper chooses dropouts on dev.",
        (
            "Pre-training makes five passes over the text mix in batches of 32; the paper makes 500,000 steps of 128,"
            " over the texts of the task and others of its sort."
        ),
        (
            "Pre-training reads texts packed together in stretches of 126 words, where a task's texts are cut; the"
            " paper goes 400 words back through long ones."
        ),
        "The paper clips the outputs of memory cells as well as gradients.",
        "All words but the 9,995 commonest of the text mix are one unknown word.",
        "Of the paper's further forms, a loss at each word that grows and joint training are left out.",
        "The layer above the last state is linear; in the authors' later program it has ReLU.",
        "That program cuts gradients of all but words at 1, and tunes at 0.0005 in batches of 64; it drops half of the"
        " numbers of words' vectors, in pre-training too.",
    ),
)
class LanguageModelLSTM(SequenceAutoencoderLSTM):
    """As the LSTM after a sequence autoencoder, which has learnt to foretell the next word in its
    place."""

    learns = NextWordByLSTM
