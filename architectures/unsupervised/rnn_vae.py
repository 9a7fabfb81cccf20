"""The recurrent variational autoencoder of sentences."""

from __future__ import annotations

import math
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.contextual_words import KeptStill
from architectures.blocks.learnt_features import LearntFeatures
from architectures.blocks.objectives.next_piece import NextPiece
from architectures.blocks.variational import Gaussian, bound, normal
from harness.layers.noise import Noise
from harness.layers.pooling import pool
from harness.problems.text_objective import Foretold
from harness.registry import Recipe, register
from harness.views.subwords import SubwordBatch
from harness.views.whole_words import WholeWords


class SentenceEncoder(KeptStill):
    """Words (B, T) of sentences to the last state (B, hidden) of an LSTM, and the posterior's mean
    (B, latent)."""

    def __init__(self, width: int, size: int, hidden: int, latent: int):
        super().__init__()
        self.table = nn.Embedding(width, size)
        self.recurrence = nn.LSTM(size, hidden, batch_first=True)
        self.mean = nn.Linear(hidden, latent)

    def forward(self, pieces: SubwordBatch) -> tuple[Tensor, Tensor]:
        last = pool(self.recurrence(self.table(pieces.ids))[0], pieces.mask, "last")
        return last, self.mean(last)


def sigmoid_weight(progress: float, middle: float, rise: float) -> float:
    """Weight of the divergence: a half at the share ``middle`` of the training, 0.12 two ``rise``
    before it and 0.88 two behind it."""
    return 1 / (1 + math.exp((middle - progress) / rise))


class SentenceBound(NextPiece):
    """The words of a sentence, one after another, each by a latent variable z and those before.

    An LSTM of its own begins in a state that is linear in z. In training each word that it reads
    is the unknown one with the probability ``left_out``, so that the words before do not tell
    everything and z has something to say.
    """

    unit = "words by a bound"
    packs = False

    def __init__(self, encoder: Any):
        super().__init__(encoder)
        size, hidden = encoder.network.table.embedding_dim, encoder.network.recurrence.hidden_size
        self.left_out, self.middle, self.rise = encoder.left_out, encoder.middle, encoder.rise
        self.deviation = nn.Linear(hidden, encoder.size)
        self.beginning = nn.Linear(encoder.size, 2 * hidden)
        self.table = nn.Embedding(encoder.view.width, size)
        self.recurrence = nn.LSTM(size, hidden, batch_first=True)
        self.output = nn.Linear(hidden, encoder.view.width)

    def posterior(self, encoder: Any, pieces: SubwordBatch) -> Gaussian:
        """The distribution of z, given the whole sentence."""
        last, mean = encoder.network(pieces)
        return Gaussian(mean, self.deviation(last))

    def read(self, pieces: SubwordBatch, unknown: int, noise: Noise) -> Tensor:
        """The words (B, T - 1) in front of those that are told; in training some are unknown, but
        never the mark of the beginning."""
        before = pieces.ids[:, :-1].clone()
        if self.training:
            unread = noise.uniform(before.shape[1] - 1) < self.left_out
            before[:, 1:][unread] = unknown
        return before

    def decoded(self, latent: Tensor, ids: Tensor) -> Tensor:
        """States (B, T, hidden) behind words (B, T) that follow on latent variables (B, K)."""
        state, cell = self.beginning(latent)[None].chunk(2, -1)
        return self.recurrence(self.table(ids), (state.contiguous(), cell.contiguous()))[0]

    def forward(self, encoder: Any, pieces: SubwordBatch, noise: Noise) -> Foretold:
        posterior = self.posterior(encoder, pieces)
        latent = posterior.at(normal(noise, encoder.size))
        states = self.decoded(latent, self.read(pieces, encoder.view.unknown, noise))
        asked = pieces.mask[:, 1:]
        logs = -F.cross_entropy(self.output(states[asked]), pieces.ids[:, 1:][asked], reduction="none")
        weight = sigmoid_weight(noise.progress, self.middle, self.rise)
        return bound(Foretold.at(logs, asked), posterior.divergence(), weight, self.training)


@register(
    "rnn_vae",
    name="RNN variational autoencoder of sentences",
    kind="plm",
    paper="Bowman et al. 2016",
    source="M2.11[167]",
    year=2016,
    parents={"weights": "rnn_vae@text_mix"},
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=32, epochs=10, patience=3, clip=5.0),
    recipes={"text": Recipe(optimizer="adam", lr=0.001, batch_size=32, epochs=5, patience=5, clip=5.0)},
    tiny={"embedded": 64, "hidden": 96, "left_out": 0.0, "vocabulary": 1000},
    deviations=(
        (
            "It is scored on plain text, by its bound: a system of language modelling must give each word a probability"
            " that does not depend on the words behind it, and what is inferred from the sentence does."
        ),
        (
            "A sentence is a stretch of 30 words of the text mix, or a text's first 30, and no sentence of the Penn"
            " Treebank or of books; all words but the 9,995 commonest are one unknown word."
        ),
        "The weight of the divergence is a sigmoid of the share of the training that is done, half-way at a quarter.",
        "Rate, clipping and numbers of passes are our choice.",
        "The bound is of one draw in evaluation.",
        "A linear layer classifies the posterior's mean, which stays as it was learnt.",
    ),
)
class RecurrentVariationalAutoencoder(LearntFeatures):
    """One LSTM reads a sentence x and infers a latent variable z, from which another writes it
    (Bowman et al. 2016, section 3): q(z | x) = N(mu, sigma^2), mu and log sigma linear in the last
    state, and p(x | z) = prod_t p(x_t | x_<t, z).

    Both learn by the bound log p(x | z) - w KL(q || N(0, I)). So that z is not ignored, w rises
    from 0 to 1 as a sigmoid, and words that the writer reads are left out
    (:class:`SentenceBound`). The vector of a text is mu.
    """

    learns = SentenceBound
    view = WholeWords(lower=True)

    def __init__(
        self,
        width: int,
        view: WholeWords,
        embedded: int = 353,
        hidden: int = 191,
        latent: int = 13,
        left_out: float = 0.38,
        middle: float = 0.25,
        rise: float = 0.03,
        tuned: bool = False,
        vocabulary: int = 10_000,
        max_length: int = 32,
    ):
        super().__init__(view, SentenceEncoder(width, embedded, hidden, latent), latent, tuned)
        self.left_out, self.middle, self.rise = left_out, middle, rise

    def vector(self, pieces: SubwordBatch) -> Tensor:
        return self.network(pieces)[1]
