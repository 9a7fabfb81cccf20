"""Siamese CBOW: word vectors whose means tell neighbouring sentences from others."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.sentences import beginnings
from architectures.blocks.spans import ENDS
from harness.problems.text import VectorTrainer
from harness.ragged import Ragged, take
from harness.registry import register
from harness.views.words import UNKNOWN, Vocabulary


def sentences_of(texts: Ragged, ends: np.ndarray) -> tuple[Ragged, np.ndarray]:
    """The sentences of the texts without unknown words, and the number of the text of each; those
    without a known word are none. ``ends`` are the numbers of the marks that end one."""
    text_of = np.repeat(np.arange(len(texts)), texts.lengths)
    begins = beginnings(*map(torch.from_numpy, (texts.values, text_of, ends))).numpy()
    known = texts.values > UNKNOWN
    number, lengths = np.unique(np.cumsum(begins)[known], return_counts=True)
    sentences = Ragged(texts.values[known].astype(np.int64), np.append(0, lengths.cumsum()))
    return sentences, text_of[begins][number - 1]


def loss(sentences: Tensor, others: Tensor, neighbours: int) -> Tensor:
    """Mean cross-entropy of the softmax over the cosines of each sentence (B, D) with ``others``
    (B, N, D), of which the first are its neighbours and share the probability alike."""
    logs = F.cosine_similarity(sentences[:, None], others, dim=2).log_softmax(dim=1)
    return -logs[:, :neighbours].mean()


@register(
    "siamese_cbow",
    name="Siamese CBOW",
    kind="fit",
    paper="Kenter et al. 2016",
    source="M2.8[123]",
    year=2016,
    version=2,
    tiny={"dims": 24, "rate": 0.01, "epochs": 2},
    deviations=(
        "Five passes, as other vectors here have; the paper makes one over 74 million sentences of novels.",
        "Neighbours are sentences of one text, which a full stop, an exclamation mark or a question mark ends; in the"
        " paper they may be of two paragraphs.",
        "Adam at 0.0001; the authors' program has Adadelta at a rate of 1 unless asked, as their published vectors"
        " have, and no Adam.",
        "Marks are words, and sentences are read whole; the authors' program leaves ten marks out, and reads 50 words.",
        "Moments of a word's vector move in the steps that read it alone.",
    ),
)
class SiameseCBOW(VectorTrainer):
    """The vector of a sentence is the mean of its words'; p(s, t) is the softmax of its cosine with
    t over its two neighbours and ``negatives`` drawn sentences, and the target gives 1/2 to each
    neighbour (Kenter et al. 2016, equations 1 to 4).

    A sentence at the beginning or the end of its text is a neighbour alone. Adam makes the
    cross-entropy small.
    """

    def __init__(
        self,
        seed: int = 0,
        dims: int = 300,
        negatives: int = 2,
        rate: float = 0.0001,
        epochs: int = 5,
        batch_size: int = 100,
    ):
        super().__init__(seed)
        self.dims, self.negatives, self.rate = dims, negatives, rate
        self.epochs, self.batch_size = epochs, batch_size

    @classmethod
    def memory_needed(cls, size: int, hyperparameters: dict[str, Any]) -> float:
        """A vocabulary as 100 MB have it; Adam has three numbers for each of a vector."""
        return (30.0 + 0.005 * hyperparameters["dims"]) * size

    def train(self, texts: Ragged, vocabulary: Vocabulary) -> np.ndarray:
        rng = np.random.default_rng(self.seed)
        ends = [mark for mark in vocabulary.ids(sorted(ENDS)) if mark != UNKNOWN]
        sentences, text_of = sentences_of(texts, np.array(ends))
        middle = 1 + np.flatnonzero(text_of[:-2] == text_of[2:])
        if not len(middle):
            raise ValueError(
                f"none of the {len(texts):,} training texts has three sentences: more of a text are needed"
            )
        vectors = torch.from_numpy(rng.normal(0, 0.01, (len(vocabulary), self.dims)).astype(np.float32))
        table = nn.EmbeddingBag.from_pretrained(vectors, freeze=False, mode="mean", sparse=True)
        optimizer = torch.optim.SparseAdam(table.parameters(), lr=self.rate)
        for _ in range(self.epochs):
            order = rng.permutation(middle)
            for start in range(0, len(order), self.batch_size):
                at = order[start : start + self.batch_size, None]
                drawn = rng.integers(len(sentences), size=(len(at), self.negatives))
                self._step(table, optimizer, sentences, np.concatenate([at, at - 1, at + 1, drawn], axis=1))
        return vectors.numpy()

    def _step(
        self, table: nn.EmbeddingBag, optimizer: torch.optim.Optimizer, sentences: Ragged, numbers: np.ndarray
    ) -> None:
        """A step on some sentences, each (B, 3 + negatives) before its neighbours and the drawn
        ones."""
        words = take(sentences, numbers.ravel())
        means = table(torch.from_numpy(words.values), torch.from_numpy(words.offsets[:-1]))
        means = means.unflatten(0, numbers.shape)
        optimizer.zero_grad()
        loss(means[:, 0], means[:, 1:], neighbours=2).backward()
        optimizer.step()
