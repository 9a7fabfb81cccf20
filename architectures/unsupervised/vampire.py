"""VAMPIRE: a variational autoencoder of bags of words, whose states help a small classifier."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.contextual_words import KeptStill
from architectures.blocks.layer_mix import LayerMix
from architectures.blocks.learnt_features import LearntFeatures
from architectures.blocks.variational import rising
from architectures.blocks.word_bags import BagBound, ContentWords, counted, word_counts
from harness.layers.pooling import pool
from harness.registry import Recipe, register
from harness.views.subwords import SubwordBatch

EPSILON, MOMENTUM = 0.001, 0.001
"""Those of the batch norm of the scores of words (the authors' code)."""


class TopicInference(KeptStill):
    """Counts of words (B, width) to linear layers, (B, latent) each, and the mean (B, latent) of
    the posterior."""

    def __init__(self, width: int, layers: int, latent: int):
        super().__init__()
        sizes = [width] + [latent] * (layers - 1)
        self.layers = nn.ModuleList(nn.Linear(size, latent) for size in sizes)
        self.mean = nn.Linear(latent, latent)

    def forward(self, counts: Tensor) -> tuple[list[Tensor], Tensor]:
        states = [counts]
        for layer in self.layers:
            states.append(layer(states[-1]))
        return states[1:], self.mean(states[-1])


class TopicBound(BagBound):
    """Words by the batch norm of theta B + b: theta = softmax(z) are shares of topics, behind a
    dropout on z, and b is the logarithm of each word's share of the training texts, which stays.

    The norm has a shift for each word and no scale. The weight of the divergence rises from 0 to 1
    over a share ``annealed`` of the training.
    """

    def __init__(self, encoder: Any):
        super().__init__(encoder, encoder.topics, encoder.topics)
        self.annealed, self.dropout = encoder.annealed, nn.Dropout(encoder.vae_dropout)
        self.topics = nn.Linear(self.latent, encoder.view.width, bias=False)
        self.register_buffer("background", encoder.view.log_shares())
        self.norm = nn.BatchNorm1d(encoder.view.width, EPSILON, MOMENTUM, affine=False)
        self.shift = nn.Parameter(torch.zeros(encoder.view.width))

    def weight_at(self, progress: float) -> float:
        return rising(progress, self.annealed)

    def decoded(self, latent: Tensor) -> Tensor:
        theta = self.dropout(latent).softmax(1)
        return self.normed(self.topics(theta) + self.background) + self.shift

    def normed(self, scores: Tensor) -> Tensor:
        """Scores (B, V) of mean 0 and deviation 1 over the batch in training, over the training so
        far otherwise."""
        if len(scores) == 1:  # has no deviation
            return F.batch_norm(scores, self.norm.running_mean, self.norm.running_var, eps=EPSILON)
        return self.norm(scores)


@register(
    "vampire",
    name="VAMPIRE",
    kind="plm",
    paper="Gururangan et al. 2019",
    source="M2.11[168]",
    year=2019,
    version=2,
    parents={"weights": "vampire@text_mix"},
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=32, epochs=50, patience=5),
    recipes={"text": Recipe(optimizer="adam", lr=0.001, batch_size=64, epochs=10, patience=10)},
    tiny={"latent": 24, "vae_dropout": 0.0, "embedded": 32, "vocabulary": 1000},
    deviations=(
        "It learns from the text mix, in which other tasks' texts are too, and not from the task's own texts alone.",
        "Its classifier reads the same words as it does: the commonest 29,995 without stop words, 400 of a text.",
        "The weight of the divergence rises over half of the training; in the authors' code over 1,000 passes, most of"
        " which no training makes.",
        "b cancels in the norm of a batch, as in the authors' code, whose many passes let the shift learn it; in"
        " evaluation a short training has a part of both.",
        "The pass with the best bound on dev is kept; the paper's has the best coherence of topics (NPMI).",
        "The deviation is not limited to 10, and draws differ from step to step, before each of which the authors' code"
        " seeds torch anew.",
        "It learns in ten passes; the authors' program makes up to fifty.",
        "The encoder's layers are linear, as the authors' program runs them, though its settings name a ReLU; an older"
        " one infers with ReLU.",
        "Batches of the classifier are drawn at random; the authors' program takes texts in the order of their file.",
        "The bound is of one draw in evaluation, too; the authors' program takes the mean.",
    ),
)
class Vampire(LearntFeatures):
    """A variational autoencoder of bags of words learns from texts without labels
    (:class:`TopicBound`); its states, as they were learnt, stand beside the mean of the word
    vectors of a linear classifier, which learns from few labels (Gururangan et al. 2019, sections 3
    and 4).

    The states are a trained mix of the encoder's layers and of theta, the softmax of the
    posterior's mean (:class:`~architectures.blocks.layer_mix.LayerMix`). It begins as half the
    first layer and half theta, as in the authors' code. Dropout acts on the mix (``mix_dropout``)
    and once more on all that the classifier reads (``dropout``). Fast.
    """

    learns = TopicBound
    view = ContentWords()
    ordinary_dropouts = ("vae_dropout", "mix_dropout", "dropout")
    unused = ("mix", "words")  # the classifier, of which plain text asks nothing

    def __init__(
        self,
        width: int,
        view: ContentWords,
        layers: int = 2,
        latent: int = 81,
        vae_dropout: float = 0.49,
        annealed: float = 0.5,
        embedded: int = 50,
        mix_dropout: float = 0.5,
        dropout: float = 0.3,
        tuned: bool = False,
        vocabulary: int = 30_000,
        max_length: int = 402,
    ):
        super().__init__(view, TopicInference(width, layers, latent), embedded + latent, tuned)
        self.topics, self.vae_dropout, self.annealed = latent, vae_dropout, annealed
        self.mix, self.words = LayerMix(layers + 1), nn.Embedding(width, embedded)
        self.mix_dropout, self.dropout = nn.Dropout(mix_dropout), nn.Dropout(dropout)
        self.mix.weights.data[1:-1] = -21.0  # of the authors' 1, -20, ..., 1 the differences count
        nn.init.xavier_uniform_(self.words.weight)

    def inferred(self, counts: Tensor) -> tuple[Tensor, Tensor]:
        states, mean = self.network(counts)
        return states[-1], mean

    def vector(self, pieces: SubwordBatch) -> Tensor:
        read = counted(pieces)
        states, mean = self.network(word_counts(pieces, self.view.width, read))
        learnt = self.mix_dropout(self.mix([*states, mean.softmax(1)]))
        return self.dropout(torch.cat([pool(self.words(pieces.ids), read, "mean"), learnt], 1))
