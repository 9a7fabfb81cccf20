"""Texts by the one vector that a network without labels has learnt to give them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from torch import Tensor

from architectures.blocks.contextual_words import KeptStill
from architectures.blocks.sentences import sentences
from harness.kinds import Parent, PretrainedEncoder
from harness.task import Row

OF_ONE_TEXT = ("text", "classify", "multilabel", "regress")
"""Types of the tasks that ask for a vector of one text, or for none."""


class LearntFeatures(PretrainedEncoder):
    """A ``network`` that learns from plain text, and :meth:`vector` of a text by it.

    The network stays as it was learnt, unless it is ``tuned``. Words have no states of their own.
    """

    view_settings: ClassVar[dict[str, str]] = {"size": "vocabulary", "max_length": "max_length"}

    def __init__(self, view: Any, network: KeptStill, size: int, tuned: bool):
        super().__init__()
        self.view, self.network, self.size, self.tuned = view, network, size, tuned

    @classmethod
    def can_answer(cls, type: str) -> bool:
        return type in OF_ONE_TEXT and super().can_answer(type)

    def inherit(self, role: str, parent: Parent, rows: Sequence[Row]) -> None:
        super().inherit(role, parent, rows)
        if not self.tuned:
            self.network.keep_still()

    def vector(self, pieces: Any) -> Tensor:
        """The vector (B, size) of each text: by default what the network gives."""
        return self.network(pieces)

    def forward(self, pieces: Any) -> Tensor:
        return self.vector(pieces)[:, None]


class SentenceFeatures(LearntFeatures):
    """A network that has learnt from sentences: the vector of a text is the mean of those of its
    sentences, of each of which so many words are read as there were to learn from."""

    def vector(self, pieces: Any) -> Tensor:
        found = sentences(pieces, self.view, self.learns.longest)
        vectors, rows = self.network(found.pieces), found.rows
        sums = vectors.new_zeros(len(pieces.ids), vectors.shape[1]).index_add(0, rows, vectors)
        return sums / rows.bincount()[:, None]
