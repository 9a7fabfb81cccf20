"""Masked words told by a deep bidirectional recurrent network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.contextual_words import ContextualWords, KeptStill
from architectures.blocks.objectives.masked_pieces import MaskedPieces, by_shares
from architectures.blocks.recurrent import Recurrent
from harness.layers.noise import Noise
from harness.problems.language_model import Surprise
from harness.problems.text_objective import Foretold, TextObjective
from harness.registry import Recipe, register
from harness.task import Row
from harness.views.subwords import SubwordBatch, Subwords
from harness.views.whole_words import WholeWords

SPREAD = 0.25
"""Vectors of words begin uniform in +- this."""


class StackedBiLSTM(KeptStill):
    """States (B, T, 2 ``hidden``) of each layer, forward ones before backward ones. From the second
    layer on a word's state knows the word by way of its neighbours: only what is masked in the
    input is hidden. Dropout acts on what a layer reads."""

    def __init__(self, width: int, hidden: int, layers: int, dropout: float):
        super().__init__()
        self.table = nn.Embedding(width, 2 * hidden)
        nn.init.uniform_(self.table.weight, -SPREAD, SPREAD)
        self.layers = nn.ModuleList(Recurrent("lstm", 2 * hidden, hidden, bidirectional=True) for _ in range(layers))
        self.dropout = nn.Dropout(dropout)

    def forward(self, ids: Tensor, mask: Tensor) -> list[Tensor]:
        states = [self.table(ids)]
        for layer in self.layers:
            states.append(layer(self.dropout(states[-1]), mask))
        return states[1:]


class MaskedWords(TextObjective):
    """15 % of the words are chosen; 80 % of these are read as the mask, 10 % as any word, and 10 %
    as they are, and a softmax over the highest state in their place tells which they were."""

    unit = "masked words"

    def __init__(self, encoder: Any):
        super().__init__(encoder)
        self.output = nn.Linear(encoder.size, encoder.view.width)

    def forward(self, encoder: Any, pieces: SubwordBatch, noise: Noise) -> Foretold:
        chosen = MaskedPieces.chosen(pieces, encoder.view, noise)
        read = pieces._replace(ids=MaskedPieces.hidden(pieces.ids, chosen, encoder.view, noise))
        states = encoder.dropout(encoder.states(read)[-1])
        scores = self.output(states[chosen])
        return Foretold.at(-F.cross_entropy(scores, pieces.ids[chosen], reduction="none"), chosen)

    @classmethod
    def floor(cls, view: Subwords, train: Sequence[Row], rows: Sequence[Row]) -> list[Surprise]:
        """Each hidden word by its share of the words of the training texts."""
        return by_shares(MaskedPieces.chosen, view, train, rows)


@register(
    "birnn_mlm",
    name="Masked words by a deep BiRNN",
    kind="plm",
    paper="AIMA Fig. 25.12",
    source="R25.5.3",
    year=2020,
    parents={"weights": "birnn_mlm@text_mix"},
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=32, epochs=10, patience=3, clip=5.0),
    recipes={"text": Recipe(optimizer="adam", lr=0.001, batch_size=32, epochs=5, patience=5, clip=5.0)},
    tiny={"layers": 2, "hidden": 64, "dropout": 0.0, "vocabulary": 1000},
    deviations=(
        "LSTM layers, sizes, dropout and both recipes are our choices: the book states none.",
        (
            "The book masks words and says neither how many nor what is read in their place: 15 %, of which a tenth is"
            " another word and a tenth stays, are BERT's."
        ),
        "A task reads a trained mix of all layers, which stay as they were learnt; the book says nothing of use.",
        "All words but the 9,995 commonest of the text mix are one unknown word.",
    ),
)
class BiRNNMaskedWords(ContextualWords):
    """Bidirectional LSTM layers read a text in which some words are masked, and tell these words;
    their states are then the vectors of a task's words, which know both sides of their text.

    A deep network could tell each word that it reads: in h_i of the second layer are the words left
    and right of i, each of which has seen word i. So what is to be told must be hidden from the
    input, and not from the state alone, as it is in language models of one direction. A task reads
    a trained mix of the layers (:class:`~architectures.blocks.layer_mix.LayerMix`). Each direction
    has ``hidden`` units.
    """

    learns = MaskedWords

    def states(self, pieces: SubwordBatch) -> list[Tensor]:
        return self.network(pieces.ids, pieces.mask)

    def __init__(
        self,
        width: int,
        view: WholeWords,
        layers: int = 2,
        hidden: int = 128,
        dropout: float = 0.1,
        tuned: bool = False,
        vocabulary: int = 10_000,
        max_length: int = 128,
        stride: int = 64,
    ):
        super().__init__(view, StackedBiLSTM(width, hidden, layers, dropout), layers, 2 * hidden, dropout, tuned)
