"""The mean-max attention autoencoder."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.contextual_words import KeptStill
from architectures.blocks.learnt_features import SentenceFeatures
from architectures.blocks.objectives.told_sentences import ToldSentences
from architectures.blocks.sentences import sentences
from harness.layers.noise import Noise
from harness.layers.pooling import pool
from harness.objectives import add_loss
from harness.problems.text_objective import Foretold
from harness.registry import Recipe, register
from harness.views.subwords import SubwordBatch
from harness.views.whole_words import WholeWords

LONGEST = 32
"""Words of a sentence that are read and told."""
SMOOTHING = 0.1
"""Share of the probability of a word that is told which all words have."""
SPREAD = 0.25
"""Vectors of words begin uniform in +- this."""
EPSILON = 1e-8
"""That of the norms (the authors' code)."""


def begin(part: nn.Module) -> None:
    """Weights of linear layers and positions as Glorot and Bengio's (2010), biases 0."""
    for module in part.modules():
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.xavier_uniform_(module.weight)
        if isinstance(module, nn.Linear):
            nn.init.zeros_(module.bias)


class PositiveAttention(nn.Module):
    """Attention of several heads, whose queries, keys and values go through ReLU, and which stand
    beside one another as they are: softmax(Q K^T / sqrt(d)) V."""

    def __init__(self, queries: int, keys: int, size: int, heads: int, dropout: float):
        super().__init__()
        if size % heads:
            raise ValueError(f"size={size} cannot be divided among heads={heads}")
        self.heads, self.dropout = heads, dropout
        self.query, self.key, self.value = nn.Linear(queries, size), nn.Linear(keys, size), nn.Linear(keys, size)

    def forward(self, states: Tensor, memory: Tensor, seen: Tensor | None = None) -> Tensor:
        """States (B, U, size) that states (B, U, queries) read of a memory (B, S, keys), where
        ``seen`` (B or 1, U or 1, S) is true."""
        read = self.query(states), self.key(memory), self.value(memory)
        queries, keys, values = (each.relu().unflatten(2, (self.heads, -1)).transpose(1, 2) for each in read)
        dropout = self.dropout if self.training else 0.0
        mask = None if seen is None else seen[:, None]
        heads = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask, dropout_p=dropout)
        return heads.transpose(1, 2).flatten(2)


class Placed(nn.Module):
    """Vectors of words (B, T, width) and of their places, added, through dropout."""

    def __init__(self, width: int, dropout: float):
        super().__init__()
        self.positions, self.dropout = nn.Embedding(LONGEST + 2, width), nn.Dropout(dropout)

    def forward(self, vectors: Tensor) -> Tensor:
        return self.dropout(vectors + self.positions.weight[: vectors.shape[1]])


class PlaceByPlace(nn.Module):
    """A network of ``inner`` units at each place, added to what it reads, and a norm."""

    def __init__(self, size: int, inner: int):
        super().__init__()
        self.network = nn.Sequential(nn.Linear(size, inner), nn.ReLU(), nn.Linear(inner, size))
        self.norm = nn.LayerNorm(size, EPSILON)

    def forward(self, states: Tensor) -> Tensor:
        return self.norm(states + self.network(states))


class MeanMaxEncoder(KeptStill):
    """Words (B, T) of sentences to the mean and the maximum of their states, side by side (B, 2 *
    size), each scaled to length 1; as they are, they are the :meth:`memory` of a decoder."""

    def __init__(self, width: int, embedded: int, size: int, inner: int, heads: int, dropout: float):
        super().__init__()
        self.table, self.placed = nn.Embedding(width, embedded), Placed(embedded, dropout)
        self.attention = PositiveAttention(embedded, embedded, size, heads, dropout)
        self.norm, self.place_by_place = nn.LayerNorm(size, EPSILON), PlaceByPlace(size, inner)
        begin(self)
        nn.init.uniform_(self.table.weight, -SPREAD, SPREAD)

    def memory(self, pieces: SubwordBatch) -> Tensor:
        """The two vectors (B, 2, size)."""
        vectors = self.placed(self.table(pieces.ids))
        states = self.place_by_place(self.norm(self.attention(vectors, vectors, pieces.mask[:, None])))
        return torch.stack([pool(states, pieces.mask, how) for how in ("mean", "max")], 1)

    def forward(self, pieces: SubwordBatch) -> Tensor:
        return F.normalize(self.memory(pieces), dim=2).flatten(1)


class Reconstructed(ToldSentences):
    """Each sentence, word by word, by states that attend to those before them, and then to a memory
    of two vectors, the mean and the maximum of the encoder's states."""

    unit = "words of sentences"
    weight = 1 - SMOOTHING
    longest = LONGEST
    steps = (0,)

    def __init__(self, encoder: Any):
        super().__init__(encoder)
        network, size = encoder.network, encoder.size // 2
        embedded, heads, dropout = network.table.embedding_dim, network.attention.heads, network.attention.dropout
        self.placed = Placed(embedded, dropout)
        self.attention = PositiveAttention(embedded, embedded, size, heads, dropout)
        self.across = PositiveAttention(size, size, size, heads, dropout)
        self.norms = nn.ModuleList(nn.LayerNorm(size, EPSILON) for _ in range(2))
        self.place_by_place = PlaceByPlace(size, network.place_by_place.network[0].out_features)
        self.output = nn.Linear(size, encoder.view.width)
        begin(self)

    def decoded(self, vectors: Tensor, memory: Tensor) -> Tensor:
        """States (B, T, size) behind the vectors (B, T, width) of words, by a memory (B, 2,
        size)."""
        before = torch.ones(vectors.shape[1], vectors.shape[1], dtype=torch.bool, device=vectors.device).tril()
        vectors = self.placed(vectors)
        states = self.norms[0](self.attention(vectors, vectors, before[None]))
        states = self.norms[1](states + self.across(states, memory))
        return self.place_by_place(states)

    def forward(self, encoder: Any, pieces: SubwordBatch, noise: Noise) -> Foretold:
        found = sentences(pieces, encoder.view, self.longest)
        [question] = self.questions(found)
        vectors = encoder.network.table(question.told.ids[:, :-1])
        states = self.decoded(vectors, encoder.network.memory(found.pieces))
        asked, told = question.asked[:, 1:], question.told.ids[:, 1:]
        logs = self.output(states[asked]).log_softmax(1)
        if self.training:
            add_loss("smoothing", -SMOOTHING * logs.mean())
        return self.answered(found, [question], [logs.gather(1, told[asked][:, None])[:, 0]])


@register(
    "mean_max_aae",
    name="Mean-max attention autoencoder",
    kind="plm",
    paper="Zhang et al. 2018",
    source="M2.11[163]",
    year=2018,
    parents={"weights": "mean_max_aae@text_mix"},
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=32, epochs=10, patience=3, clip=5.0),
    recipes={
        "text": Recipe(optimizer="adam", lr=0.0002, betas=(0.9, 0.98), batch_size=4, epochs=5, patience=5, clip=5.0)
    },
    tiny={"embedded": 32, "size": 32, "inner": 48, "heads": 2, "dropout": 0.0, "vocabulary": 1000},
    deviations=(
        "A quarter of the paper's sizes, which are 2,048 and 4,096.",
        "Vectors of words begin at random and are learnt; the paper's are those of GloVe, and stay.",
        (
            "It learns from the text mix, in five passes, and not from books. A full stop, an exclamation mark or a"
            " question mark ends a sentence, of which 32 words are read; the authors leave out shorter ones than four"
            " words, longer ones than 32, and those with unknown words."
        ),
        "All words but the 9,995 commonest are one unknown word; the paper has 21,583 words.",
        "A batch of text holds the sentences of four rows of 254 words, some 56; the paper's holds 64.",
        "Sums of numbers do not tell what is padding, as they do in the authors' code.",
        "A linear layer classifies the vector, whose network stays as it was learnt; that of a text is the mean of its"
        " sentences'.",
        "The encoder reads a mark in front of each sentence, too; the authors' does not.",
    ),
)
class MeanMaxAutoencoder(SentenceFeatures):
    """The words of a sentence attend to one another, and the mean and the maximum of their states
    are all that a decoder knows of it: a memory of two, to which each word attends that it tells
    (Zhang et al. 2018, section 3; :class:`Reconstructed`).

    The vector of a sentence is both, side by side.
    """

    learns = Reconstructed
    view = WholeWords(lower=True)

    def __init__(
        self,
        width: int,
        view: WholeWords,
        embedded: int = 300,
        size: int = 512,
        inner: int = 1024,
        heads: int = 8,
        dropout: float = 0.5,
        tuned: bool = False,
        vocabulary: int = 10_000,
        max_length: int = 256,
    ):
        super().__init__(view, MeanMaxEncoder(width, embedded, size, inner, heads, dropout), 2 * size, tuned)
