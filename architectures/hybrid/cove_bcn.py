"""Biattentive classification network over the vectors of a translator's encoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from architectures.blocks.contextual_words import KeptStill
from architectures.blocks.packed_lstm import PackedLSTM
from architectures.blocks.parents_words import ParentsWords
from architectures.blocks.recurrent import Recurrent
from harness.errors import ModelError
from harness.kinds import TextEncoder, pool
from harness.layers.attention import masked_softmax
from harness.registry import Recipe, register, register_input
from harness.saved_models.parents import copy_weights
from harness.task import Row
from harness.views.words import UNKNOWN, WordBatch
from harness.views.words_and_characters import WordCharacterBatch, WordsAndCharacters

if TYPE_CHECKING:
    from harness.saved_models.model import KeptModel


class TranslatorsEncoder(KeptStill):
    """Numbers (B, T) of words to states (B, T, 2 ``hidden``), by their vectors and a BiLSTM."""

    def __init__(self, words: int, dims: int, hidden: int, layers: int):
        super().__init__()
        self.table = nn.Embedding(words, dims)
        self.encoder = PackedLSTM(dims, hidden, layers, bidirectional=True)

    def forward(self, numbers: Tensor, mask: Tensor) -> Tensor:
        return self.encoder(self.table(numbers), mask).states


@register_input(
    "cove_words",
    name="CoVe word vectors",
    paper="McCann et al. 2017",
    source="M-T1[217]",
    year=2017,
    parents={"inputs": "attn_seq2seq_cove@multi30k"},
    tiny={"hidden": 16},
    deviations=(
        "Sizes are those of attn_seq2seq_cove, and what deviates there deviates here.",
        "The translator reads vectors of words of its own; the paper's are those that the task reads, GloVe's.",
        "A word that the translator does not know is its unknown word.",
        "Captions that the translator learnt from are premises of SNLI too, among them those of 1,694 of its 9,824 test"
        " rows.",
        "Without a parent, as `archbench check` runs it, the network begins at random and is trained, and its words are"
        " those of the task.",
    ),
)
class CoVeWords(ParentsWords):
    """The states of a translator's encoder, which stays as it was learnt, behind the vectors of any
    architecture that reads words.

    ``hidden`` and ``layers`` must be the parent's.
    """

    def __init__(self, view: WordsAndCharacters, hidden: int = 300, layers: int = 2):
        super().__init__()
        self.hidden, self.layers, self.size = hidden, layers, 2 * hidden
        self._begin(view.vocabulary.words, view.width, hidden)

    def _begin(self, words: Sequence[str], width: int, dims: int) -> None:
        """Read by an encoder with so many vectors of words of ``dims``; the first two are those of
        padding and of the unknown word."""
        self.know({word: number for number, word in enumerate(words, start=2)}, UNKNOWN)
        self.network = TranslatorsEncoder(width, dims, self.hidden, self.layers)

    def inherit(self, role: str, parent: KeptModel, rows: Sequence[Row]) -> None:
        model = parent.model
        if model is None or model.table is None or not isinstance(getattr(model.encoder, "encoder", None), PackedLSTM):
            raise ModelError(f"{parent.description.part.architecture} encodes no words, as attn_seq2seq_cove does")
        vectors: Tensor = model.table.tuned.weight
        self._begin(parent.view.vocabulary.words, *vectors.shape)  # type: ignore[union-attr]
        self.network.table.load_state_dict({"weight": vectors})
        copy_weights(parent, self.network.encoder, "encoder.encoder")
        self.network.keep_still()

    def forward(self, words: WordCharacterBatch) -> Tensor:
        return self.network(self.found(words), words.mask)


class Maxout(nn.Module):
    """The largest of ``pieces`` linear functions, for each of the numbers that it gives."""

    def __init__(self, width: int, size: int, pieces: int):
        super().__init__()
        self.linear = nn.Linear(width, size * pieces)
        self.pieces = pieces

    def forward(self, inputs: Tensor) -> Tensor:
        return self.linear(inputs).unflatten(1, (-1, self.pieces)).amax(2)


@register(
    "cove_bcn",
    name="BCN + Char + CoVe",
    kind="text",
    paper="McCann et al. 2017",
    source="M-T1[217]",
    year=2017,
    version=2,
    inputs=("char_cnn_words", "cove_words"),
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=100, epochs=40, patience=5, clip=5.0),
    tiny={"hidden": 16, "dropout": 0.0},
    vectors_of_paper="GloVe",
    deviations=(
        "Characters of words are read by a convolution that is trained here; the paper's vectors of n-grams of"
        " characters were learnt beforehand.",
        "CoVe is of our small translator (cove_words).",
        "Dropout stands where the paper normalises over a batch, which may be a single text here.",
        "Sizes of the layers at the end, all dropout, batch, epochs and clipping are those of a re-implementation"
        " (AllenNLP); the paper chooses among several sizes and dropouts on dev, and its dropouts are 0.1, 0.2 or 0.3.",
    ),
)
class BiattentiveClassification(TextEncoder):
    """Scores (B, classes) of a text that attends to itself, as both texts of a pair would.

    A ReLU layer acts on each word, and a BiLSTM gives X. Each state attends to all of the text,
    itself among them, by their products: C = softmax(X X^T) X. A second BiLSTM integrates
    [X; X - C; X * C]. Of its states the maximum, the mean, the minimum and a weighted mean, whose
    weights are a softmax of X v + b, pass three maxout layers, each a half of the one before, and
    the last one the classes. Word vectors are fixed. ``dropout`` acts before and behind the ReLU
    layer, ``pooled_dropout`` on what the pooling gives, ``first_dropout`` and ``second_dropout``
    behind the first and second maxout layer. Slow, because a translator's encoder reads the text
    too.
    """

    vectors = "fixed"

    def __init__(
        self,
        width: int,
        classes: int,
        hidden: int = 300,
        pieces: int = 4,
        dropout: float = 0.25,
        pooled_dropout: float = 0.1,
        first_dropout: float = 0.2,
        second_dropout: float = 0.3,
    ):
        super().__init__()
        self.words = nn.Sequential(nn.Dropout(dropout), nn.Linear(width, hidden), nn.ReLU(), nn.Dropout(dropout))
        self.encoding = Recurrent("lstm", hidden, hidden, bidirectional=True)
        self.integration = Recurrent("lstm", 3 * self.encoding.size, hidden, bidirectional=True)
        self.attention = nn.Linear(self.integration.size, 1)
        size = 4 * self.integration.size
        self.end = nn.Sequential(
            nn.Dropout(pooled_dropout),
            Maxout(size, size // 2, pieces),
            nn.Dropout(first_dropout),
            Maxout(size // 2, size // 4, pieces),
            nn.Dropout(second_dropout),
            Maxout(size // 4, classes, pieces),
        )

    ordinary_dropouts = ("dropout", "pooled_dropout", "first_dropout", "second_dropout")

    def forward(self, words: WordBatch) -> Tensor:
        x = self.encoding(self.words(words.vectors), words.mask)
        attended = masked_softmax(x @ x.transpose(1, 2), words.mask[:, None]) @ x
        states = self.integration(torch.cat([x, x - attended, x * attended], dim=2), words.mask)
        weights = masked_softmax(self.attention(states).squeeze(2), words.mask)
        summary = (weights[:, None] @ states).squeeze(1)
        largest, mean = (pool(states, words.mask, name) for name in ("max", "mean"))
        smallest = -pool(-states, words.mask, "max")
        return self.end(torch.cat([largest, mean, smallest, summary], dim=1))
