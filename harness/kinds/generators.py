"""Kinds that write: symbol by symbol after a source, or word by word in a text."""

from __future__ import annotations

from typing import Any

import torch.nn.functional as F
from torch import Tensor

from harness.kinds.encoders import Encoder, SequenceEncoder
from harness.objectives import Carried
from harness.views.base import View
from harness.views.stream import Stream
from harness.views.words import WordBatch


class Generator(Encoder):
    """Source vectors and a target prefix to next-symbol scores.

    ``forward(vectors (B,S,width), mask (B,S), prefix (B,U)) -> (B,U,symbols)`` under teacher
    forcing; ``start(vectors, mask) -> state`` and ``step(symbols (B,), state) -> (log-probabilities
    (B,symbols), state)`` for decoding with ``beam`` hypotheses.
    """

    gives = "next symbols"
    beam: int = 1

    @classmethod
    def reads(cls, column: str, hyperparameters: dict[str, Any]) -> View | None:
        """A fresh view for sources in ``column``: the class's own, or else the usual one."""
        own = super().reads(column, hyperparameters)
        return SequenceEncoder.reads(column, {}) if own is None else own

    def start(self, vectors: Tensor, mask: Tensor) -> Any:
        raise NotImplementedError

    def step(self, symbols: Tensor, state: Any) -> tuple[Tensor, Any]:
        raise NotImplementedError


class CopyingGenerator(Generator):
    """A generator whose output vocabulary each source extends by its own words.

    ``forward`` and ``start`` have a third parameter, ``source`` (B,S): the number of each source
    word among the symbols, or, for one that is none of them, ``symbols`` plus the first place where
    it stands. Prefixes hold such numbers too, and log-probabilities are (B, U, symbols + S) of
    ``forward``, (B, symbols + S) of ``step``; whatever is neither a symbol nor in the source has a
    probability of about 0.
    """

    gives = "symbols and copies"

    @classmethod
    def reads(cls, column: str, hyperparameters: dict[str, Any]) -> View | None:
        return super().reads(column, hyperparameters) if column == "text" else None


class LanguageModel(Encoder):
    """The words before each word of a text to the probability of the word itself.

    Texts are read stretch by stretch. ``forward(words, state)`` is given the word before each word
    of a stretch, its vectors (B, T, width), and what the stretch before left behind; it returns
    ``states`` (B, T, size), from which the words are scored, and the state that it leaves. A state
    is a tensor with the texts in its first dimension, or a tuple or dict of such tensors;
    :meth:`start` gives that of a text's beginning. A constructor with a parameter ``symbols`` is
    given the number of words that can come.
    """

    gives = "next words"
    view = Stream()
    trained_by = Carried
    window: int | None = None
    """Number of words before a word on which its probability depends; None for all of them."""

    def start(self, texts: int) -> Any:
        """State before the first word of so many texts: none, for a network that sees nothing but
        the stretch."""
        return ()

    def forward(self, words: WordBatch, state: Any) -> tuple[Tensor, Any]:
        raise NotImplementedError

    def scores(self, states: Tensor) -> Tensor:
        """Scores (..., symbols) of all words behind states (..., size), before the softmax."""
        raise NotImplementedError

    def log_probabilities(self, states: Tensor, words: Tensor) -> Tensor:
        """Natural log-probability of one word for each of the states; by default by a softmax over
        the :meth:`scores`."""
        scores = self.scores(states).flatten(0, -2)
        return -F.cross_entropy(scores, words.flatten(), reduction="none").view_as(words)
