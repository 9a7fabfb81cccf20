"""Transformer encoder for tagging."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.blocks.transformer import Attention, Memory, Transformer
from harness.kinds import Tagger
from harness.registry import Recipe, register
from harness.views.words import WordBatch, Words


class TimeFirstAttention(Attention):
    """Attention that starts, adds and drops as :class:`torch.nn.MultiheadAttention` does, with the
    time before the texts in memory: a seed gives what it gave when the tagger had PyTorch's layers.

    The matrices of queries, keys and values start Glorot-uniform, all biases at zero.
    """

    def __init__(self, size: int, heads: int, dropout: float = 0.0):
        with torch.random.fork_rng(devices=[]):  # PyTorch draws the weights in another order
            super().__init__(size, heads, dropout, joint=True)
        self.output.reset_parameters()
        nn.init.xavier_uniform_(self.queries_keys_values.weight)
        nn.init.zeros_(self.queries_keys_values.bias)
        nn.init.zeros_(self.output.bias)

    def project(self, states: Tensor) -> tuple[Tensor, Memory]:
        queries, memory = super().project(states.transpose(0, 1))
        return queries.transpose(0, 2), Memory(*(part.transpose(0, 2) for part in memory))

    def join(self, heads: Tensor) -> Tensor:
        return super().join(heads.transpose(0, 2)).transpose(0, 1)


@register(
    "transformer_tagger",
    name="Transformer POS tagger",
    kind="tag",
    paper="AIMA Fig. 25.10",
    source="R25.4.2",
    year=2020,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=32, clip=5.0, vector_dims=128),
    tiny={"size": 24, "heads": 2, "inner": 48},
    deviations=(
        "The book gives neither sizes nor training: 128 wide with 4 heads, and Adam with clipped gradients, are ours.",
        "Each residual sum is followed by layer norm, as in the original transformer; the book leaves it out.",
    ),
)
class TransformerTagger(Tagger):
    """Word and learned position vectors summed, encoder layers, and label scores (B, T, labels)
    with a softmax for each word.

    Word vectors of another width than ``size`` are mapped to it first. There is a position vector
    for each word that the view keeps; those beyond the longest training sentence stay as they
    began. The layers are those of :class:`torch.nn.TransformerEncoderLayer`, whose inner units have
    dropout too.
    """

    decoder = "softmax"

    def __init__(
        self,
        width: int,
        labels: int,
        view: Words,
        size: int = 128,
        heads: int = 4,
        layers: int = 3,
        inner: int = 512,
        dropout: float = 0.1,
    ):
        super().__init__()
        self.projection = nn.Identity() if width == size else nn.Linear(width, size)
        # Of the size that word vectors start with: greater ones would hide the words.
        self.positions = nn.Parameter(torch.empty(view.max_length, size).uniform_(-0.25, 0.25))
        self.dropout = nn.Dropout(dropout)
        self.body = Transformer(
            size, heads, inner, layers, dropout, inner_dropout=dropout, attention=TimeFirstAttention
        )
        self.emissions = nn.Linear(size, labels)

    def forward(self, words: WordBatch) -> Tensor:
        states = self.dropout(self.projection(words.vectors) + self.positions[: words.mask.shape[1]])
        return self.emissions(self.body(states, words.mask))
