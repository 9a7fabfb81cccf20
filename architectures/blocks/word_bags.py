"""Texts as bags of content words, and a latent variable that foretells the bag."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from architectures.blocks.content_words import content_words
from architectures.blocks.variational import Gaussian, bound, normal
from harness.layers.noise import Noise
from harness.problems.language_model import Surprise
from harness.problems.text_objective import Foretold, TextObjective, batches, summed
from harness.ragged import Columns, Ragged
from harness.task import Row
from harness.views.base import Text
from harness.views.subwords import SubwordBatch, Subwords
from harness.views.whole_words import WholeWords


@dataclass
class ContentWords(WholeWords):
    """The words of a text that are in the vocabulary, in lower case, without marks and stop words:
    all others are left out. ``counts`` (V,) says how often the training texts have each."""

    def fit(self, texts: Sequence[Text]) -> None:
        super().fit([content_words(text) for text in texts])
        if self.learnt is None:
            self.counts = np.bincount(self.encode(texts)["ids"].values, minlength=self.width)  # type: ignore[union-attr]

    def encode(self, texts: Sequence[Text]) -> Columns:
        return {"ids": Ragged.of([self.words[w] for w in content_words(t) if w in self.words] for t in texts)}

    def log_shares(self) -> Tensor:
        """Natural logarithm of each word's share (V,) of those of the training texts, every one
        counted once more."""
        counts = 1.0 + self.counts
        return torch.from_numpy(np.log(counts / counts.sum())).to(torch.get_default_dtype())

    def state(self) -> dict[str, Any]:
        return super().state() | {"counts": self.counts.tolist()}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self.counts = np.array(state["counts"])


def counted(pieces: SubwordBatch) -> Tensor:
    """True (B, T) at the words of texts between their marks; of a text without any, at the mark of
    its end, so that each text has something to say."""
    places, last = torch.arange(pieces.ids.shape[1], device=pieces.ids.device), pieces.mask.sum(1, keepdim=True) - 1
    return torch.where(last > 1, (places > 0) & (places < last), places == last)


def word_counts(pieces: SubwordBatch, width: int, counted: Tensor) -> Tensor:
    """Number of times (B, width) that each text has each word, at the counted places (B, T)."""
    ones = counted.to(torch.get_default_dtype())
    return ones.new_zeros(len(ones), width).scatter_add(1, pieces.ids, ones)


class BagBound(TextObjective):
    """The probability of all words of a bag by one latent variable, which was inferred from it.

    The encoder gives the mean of the posterior and the layer below it, ``hidden`` numbers wide,
    from which the deviation is read; that begins at 1. The score is the bound log p(bag | z) -
    KL(q || p), z drawn once: in each pass anew, in evaluation always the same.
    """

    unit = "content words by a bound"
    packs = False

    def __init__(self, encoder: Any, hidden: int, latent: int):
        super().__init__(encoder)
        self.latent, self.deviation = latent, nn.Linear(hidden, latent)
        nn.init.zeros_(self.deviation.weight)
        nn.init.zeros_(self.deviation.bias)

    def posterior(self, encoder: Any, counts: Tensor) -> Gaussian:
        """The distribution of the latent variable, given the words of each text (B, V)."""
        hidden, mean = encoder.inferred(counts)
        return Gaussian(mean, self.deviation(hidden))

    def decoded(self, latent: Tensor) -> Tensor:
        """Scores (B, V) of all words by the latent variable (B, K), before the softmax."""
        raise NotImplementedError

    def weight_at(self, progress: float) -> float:
        """Weight of the divergence when that share of the training is done."""
        return 1.0

    def forward(self, encoder: Any, pieces: SubwordBatch, noise: Noise) -> Foretold:
        asked = counted(pieces)
        posterior = self.posterior(encoder, word_counts(pieces, encoder.view.width, asked))
        scores = self.decoded(posterior.at(normal(noise, self.latent)))
        logs = scores.log_softmax(1).gather(1, pieces.ids)[asked]
        told = Foretold.at(logs, asked)
        return bound(told, posterior.divergence(), self.weight_at(noise.progress), self.training)

    @classmethod
    def floor(cls, view: Subwords, train: Sequence[Row], rows: Sequence[Row]) -> list[Surprise]:
        """Each word by its share of the words of the training texts."""
        assert isinstance(view, ContentWords)
        logs, found = view.log_shares(), []
        for pieces in batches(view, rows):
            asked = counted(pieces)
            found += summed(Foretold.at(logs[pieces.ids[asked]], asked), len(asked))
        return found

    @classmethod
    def by_heart(cls, view: Subwords, rows: Sequence[Row]) -> list[Surprise]:
        """Each word by its share of its own text, after it was told which of the texts it is."""
        found = []
        for pieces in batches(view, rows):
            asked = counted(pieces)
            counts = word_counts(pieces, view.width, asked)
            words = counts.sum(1)
            sums = torch.xlogy(counts, counts / words[:, None]).sum(1) - math.log(len(rows))
            found += [[total, int(count)] for total, count in zip(sums.tolist(), words.tolist(), strict=True)]
        return found
