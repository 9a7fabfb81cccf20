"""The next word, by a softmax over the vocabulary that shares nothing with the vectors of words."""

from __future__ import annotations

from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.objectives.next_piece import NextPiece
from harness.layers.noise import Noise
from harness.problems.text_objective import Foretold
from harness.views.subwords import SubwordBatch


class NextWord(NextPiece):
    """The probability of each word of a text by the encoder's state at the word before it. States
    have ``size`` numbers, by default as many as what a task reads of the encoder."""

    unit = "words"

    def __init__(self, encoder: Any, size: int | None = None):
        super().__init__(encoder)
        self.output = nn.Linear(size or encoder.size, encoder.view.width)

    @staticmethod
    def states(encoder: Any, pieces: SubwordBatch) -> Tensor:
        """The states (B, T, size) by which words are foretold."""
        return encoder(pieces)

    def forward(self, encoder: Any, pieces: SubwordBatch, noise: Noise) -> Foretold:
        states, asked = self.states(encoder, pieces), pieces.mask[:, 1:]
        return self.scored(states[:, :-1], pieces.ids[:, 1:], asked)

    def scored(self, states: Tensor, words: Tensor, asked: Tensor) -> Foretold:
        """The words (B, T) in the places (B, T) that are asked, each by the state (B, T, size) of
        its place."""
        logs = -F.cross_entropy(self.output(states[asked]), words[asked], reduction="none")
        return Foretold.at(logs, asked)
