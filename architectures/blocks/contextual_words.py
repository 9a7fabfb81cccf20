"""Vectors of words in their text, by a recurrent network that learnt from plain text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

from torch import Tensor, nn

from architectures.blocks.layer_mix import LayerMix
from harness.kinds import Parent, PretrainedEncoder
from harness.layers.pooling import pool
from harness.task import Row
from harness.views.whole_words import WholeWords


class KeptStill(nn.Module):
    """A network that can be kept as it is: then nothing in it is trained, and no dropout acts."""

    still = False

    def keep_still(self) -> None:
        self.still = True
        self.requires_grad_(False).eval()

    def train(self, mode: bool = True) -> Self:
        return super().train(mode and not self.still)


class ContextualWords(PretrainedEncoder):
    """A ``network`` with some ``layers``, and a trained mix of their states.

    A network that learnt from plain text stays as it is, unless it is ``tuned``: of the encoder the
    mix alone is trained then. The vector of a text is the mean of those of its words and marks, or
    their maximum (``pooling``), through dropout.
    """

    pooling: ClassVar[str] = "mean"

    view = WholeWords()
    view_settings: ClassVar[dict[str, str]] = {"size": "vocabulary", "max_length": "max_length", "stride": "stride"}
    unused = ("mix",)  # the objective asks the layers themselves, and of one layer there is no mix

    def __init__(self, view: Any, network: KeptStill, layers: int, size: int, dropout: float, tuned: bool):
        super().__init__()
        self.view, self.network, self.size, self.tuned = view, network, size, tuned
        self.mix, self.dropout = LayerMix(layers), nn.Dropout(dropout)

    def inherit(self, role: str, parent: Parent, rows: Sequence[Row]) -> None:
        super().inherit(role, parent, rows)
        if not self.tuned:
            self.network.keep_still()

    def states(self, pieces: Any) -> list[Tensor]:
        """The states (B, T, size) of each layer of the network."""
        raise NotImplementedError

    def forward(self, pieces: Any) -> Tensor:
        return self.mix(self.states(pieces))

    def vector(self, pieces: Any) -> Tensor:
        return self.dropout(pool(self(pieces), pieces.mask, self.pooling))

    def word_states(self, states: Tensor) -> Tensor:
        return self.dropout(states)
