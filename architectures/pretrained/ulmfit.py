"""ULMFiT."""

from __future__ import annotations

import itertools
import math
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.objectives.next_piece import NextPiece, next_pieces
from harness.kinds import PretrainedEncoder
from harness.layers.noise import Noise
from harness.layers.pooling import pool
from harness.objectives import Learner, Objective, Step
from harness.problems.text_objective import Foretold
from harness.registry import Recipe, register
from harness.views.subwords import SubwordBatch
from harness.views.whole_words import WholeWords

SPREAD = 0.1
"""Vectors of words begin uniform in +- this."""


def locked_dropout(vectors: Tensor, rate: float, training: bool) -> Tensor:
    """Dropout of vectors (B, T, D) with one mask for all words of a text (Gal & Ghahramani
    2016)."""
    return vectors * F.dropout(torch.ones_like(vectors[:, :1]), rate, training)


class WordVectors(nn.Module):
    """Vectors (B, T, size) of words. In training a share ``word_dropout`` of the vocabulary is
    dropped wherever it stands in the batch, and numbers at the rate ``dropout``."""

    def __init__(self, width: int, size: int, word_dropout: float, dropout: float):
        super().__init__()
        self.table = nn.Embedding(width, size)
        nn.init.uniform_(self.table.weight, -SPREAD, SPREAD)
        self.word_dropout, self.dropout = word_dropout, dropout

    def forward(self, ids: Tensor) -> Tensor:
        kept = F.dropout(torch.ones_like(self.table.weight[:, :1]), self.word_dropout, self.training)
        return locked_dropout(self.table(ids) * kept[ids], self.dropout, self.training)


class WeightDropLSTM(nn.LSTM):
    """An LSTM in whose matrices from state to state weights are dropped, the same ones at all words
    of a batch (Merity et al. 2018, 2): vectors (B, T, width) -> states (B, T, hidden)."""

    def __init__(self, width: int, hidden: int, weight_dropout: float):
        super().__init__(width, hidden, batch_first=True)
        self.weight_dropout = weight_dropout

    def forward(self, vectors: Tensor) -> Tensor:
        recurrent = F.dropout(self.weight_hh_l0, self.weight_dropout, self.training)
        weights = [self.weight_ih_l0, recurrent, self.bias_ih_l0, self.bias_hh_l0]
        start = vectors.new_zeros(1, len(vectors), self.hidden_size)
        return torch.lstm(vectors, (start, start), weights, True, 1, 0.0, self.training, False, self.batch_first)[0]


class AWDLSTM(nn.Module):
    """Words (B, T) to the states (B, T, size) of the highest of some weight-dropped LSTM layers,
    which is as wide as the vectors of words; between layers ``dropout`` acts.

    The lowest ``still`` of the layers, the vectors of words counted as one of them, are constants
    to the gradient.
    """

    still = 0

    def __init__(
        self,
        width: int,
        size: int,
        hidden: int,
        layers: int,
        word_dropout: float,
        input_dropout: float,
        dropout: float,
        weight_dropout: float,
    ):
        super().__init__()
        self.embedded = WordVectors(width, size, word_dropout, input_dropout)
        widths = [size, *[hidden] * (layers - 1), size]
        self.layers = nn.ModuleList(
            WeightDropLSTM(below, above, weight_dropout) for below, above in itertools.pairwise(widths)
        )
        self.dropout = dropout

    def forward(self, ids: Tensor) -> Tensor:
        states = self.embedded(ids)
        for number, layer in enumerate(self.layers):
            read = locked_dropout(states, self.dropout, self.training) if number else states
            states = layer(read.detach() if number < self.still else read)
        return states.detach() if len(self.layers) < self.still else states


class NextWordByVectors(NextPiece):
    """The probability of each word of a text by the highest state at the word before it; the
    vectors of words are the output layer."""

    unit = "words"

    def forward(self, encoder: Any, pieces: SubwordBatch, noise: Noise) -> Foretold:
        states = locked_dropout(encoder.network(pieces.ids), encoder.dropout, encoder.training)
        return next_pieces(encoder.network.embedded, states, pieces)


class GradualTuning(Objective):
    """The language model's loss on the texts of the training rows, and behind it the supervised
    loss of more and more layers.

    The first ``further`` of the training foretells the words of the rows of each batch; none of dev
    or test is read. Then the layers above the language model learn alone, and after each further
    ``thawing`` of the training the next one below begins to.
    """

    whole_pilots = True

    def __init__(self, owner: ULMFiT, model: Learner | None, inner: Objective | None = None):
        super().__init__(owner, model, inner)
        self.further, self.thawing = owner.further, owner.thawing
        self.last_phase = self.further
        self.learns = NextWordByVectors(owner)

    def losses(self, model: Learner, step: Step) -> dict[str, Tensor]:
        assert self.inner is not None
        network = model.encoder.network
        if step.progress < self.further:
            network.still = 0
            pieces = model.read(step.batch.inputs)["text"]
            logs = self.learns(model.encoder, pieces, Noise(pieces.ids, pieces.mask)).logs
            return {"loss": -logs.mean()}
        passed = (step.progress - self.further) / self.thawing
        network.still = max(0, len(network.layers) + 1 - math.floor(passed + 1e-6))
        return self.inner.losses(model, step)


class BatchNorm(nn.BatchNorm1d):
    """Batch norm of vectors (B, size); one that is alone is normed by those that were seen
    before."""

    def forward(self, vectors: Tensor) -> Tensor:
        if self.training and len(vectors) == 1:
            return F.batch_norm(vectors, self.running_mean, self.running_var, self.weight, self.bias)
        return super().forward(vectors)


@register(
    "ulmfit",
    name="ULMFiT",
    kind="plm",
    paper="Howard & Ruder 2018",
    source="M-T1 T2[216]",
    year=2018,
    version=2,
    parents={"weights": "ulmfit@text_mix"},
    recipe=Recipe(
        optimizer="adam",
        lr=0.01,
        batch_size=64,
        epochs=20,
        patience=20,
        clip=25.0,
        lr_schedule="slanted_triangle",
        betas=(0.7, 0.99),
        warmup_share=0.1,
        lowest=0.03125,
        layer_decay=0.384615,
    ),
    recipes={
        "text": Recipe(
            optimizer="adam",
            lr=0.004,
            batch_size=64,
            epochs=5,
            patience=5,
            clip=0.3,
            lr_schedule="slanted_triangle",
            betas=(0.7, 0.99),
            warmup_share=0.1,
            lowest=0.03125,
        )
    },
    tiny={
        "embedding": 32,
        "hidden": 48,
        "layers": 2,
        "word_dropout": 0.0,
        "input_dropout": 0.0,
        "hidden_dropout": 0.0,
        "weight_dropout": 0.0,
        "dropout": 0.0,
        "dense_dropout": 0.0,
        "vocabulary": 1000,
    },
    deviations=(
        "Vectors of 128 and two layers of 384 units below the last one, not 400 and 1,150.",
        (
            "Pre-training reads the text mix of 17 million words, five times and by the recipe of tuning, in stretches"
            " of 126 words that begin anew; the paper reads Wikipedia of 103 million, 70 words at a time, and goes on."
        ),
        "All words but the 9,995 commonest of the text mix are one unknown word, in the task's own texts too.",
        (
            "The first quarter of the passes tunes the language model to the task's texts, a text at a time; one rate,"
            " one triangle and one fall from layer to layer serve for it and for the classifier, of which the paper has"
            " one each, 0.004 and 0.01."
        ),
        "The language model is tuned on the training rows alone, and not on unlabelled texts beside them.",
        "Twenty passes on all tasks, five and fifteen; the paper chooses their number by dev.",
        "No penalty pulls states towards zero or towards each other; the language model's paper and the authors'"
        " program have both.",
        "Dropouts are the same in all steps, as the paper prints them; in the authors' program those of the language"
        " model are half of them or less.",
        "Where the paper and the authors' program differ (betas, rates of layers, how layers are let go), ours is the"
        " paper's.",
        "The first 126 words of a text are read; the paper reads whole texts in stretches.",
        "One language model reads forward; the paper's best results add one that reads backward.",
        "Words in capitals, long letters and repetitions have no marks of their own; the paper adds them to the texts.",
    ),
)
class ULMFiT(PretrainedEncoder):
    """A language model of LSTM layers that learns from plain text, then from the texts of the task,
    and under a classifier that reads its last state, the maximum and the mean of all states.

    Weights from state to state are dropped, and every other dropout has one mask for a whole text.
    In tuning the rate rises for a tenth of the steps and falls for the rest, is 2.6 times smaller
    in each layer further down, and layers begin to learn one after another, from the top
    (:class:`GradualTuning`). The vector of a text is [h_T; max; mean] through batch norm, dropout,
    a layer of ``dense`` units with ReLU, batch norm and dropout.
    """

    view = WholeWords()
    view_settings: ClassVar[dict[str, str]] = {"size": "vocabulary", "max_length": "max_length"}
    learns = NextWordByVectors
    trained_by = GradualTuning
    ordinary_dropouts = ("word_dropout", "input_dropout", "hidden_dropout", "dropout", "dense_dropout")
    unused = ("pooler",)  # plain text is foretold below it

    @classmethod
    def can_answer(cls, type: str) -> bool:
        """True for plain text, and for the classification of texts, which the paper is about."""
        return type in ("text", "classify")

    def __init__(
        self,
        width: int,
        view: WholeWords,
        embedding: int = 128,
        hidden: int = 384,
        layers: int = 3,
        word_dropout: float = 0.05,
        input_dropout: float = 0.4,
        hidden_dropout: float = 0.3,
        weight_dropout: float = 0.5,
        dropout: float = 0.4,
        dense: int = 50,
        dense_dropout: float = 0.1,
        further: float = 0.25,
        thawing: float = 0.05,
        vocabulary: int = 10_000,
        max_length: int = 128,
    ):
        super().__init__()
        if not 0 <= further < 1:
            raise ValueError(f"further={further}: expected is a share of the training from 0 to below 1")
        if thawing <= 0:
            raise ValueError(f"thawing={thawing}: expected is a share of the training above 0")
        self.view, self.size, self.dropout = view, dense, dropout
        self.further, self.thawing = further, thawing
        self.network = AWDLSTM(
            width, embedding, hidden, layers, word_dropout, input_dropout, hidden_dropout, weight_dropout
        )
        self.pooler = nn.Sequential(
            BatchNorm(3 * embedding),
            nn.Dropout(dropout),
            nn.Linear(3 * embedding, dense),
            nn.ReLU(),
            BatchNorm(dense),
            nn.Dropout(dense_dropout),
        )

    def vector(self, pieces: SubwordBatch) -> Tensor:
        states = self.network(pieces.ids)
        return self.pooler(torch.cat([pool(states, pieces.mask, how) for how in ("last", "max", "mean")], -1))
