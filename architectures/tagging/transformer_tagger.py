"""Transformer encoder for tagging."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from harness.kinds import Tagger
from harness.registry import Recipe, register
from harness.views.words import WordBatch, Words


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
    began. The layers are :class:`torch.nn.TransformerEncoderLayer`.
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
        if size % heads:
            raise ValueError(f"transformer_tagger: size={size} cannot be divided among heads={heads}")
        self.projection = nn.Identity() if width == size else nn.Linear(width, size)
        # Of the size that word vectors start with: greater ones would hide the words.
        self.positions = nn.Parameter(torch.empty(view.max_length, size).uniform_(-0.25, 0.25))
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(size, heads, inner, dropout, batch_first=True) for _ in range(layers)
        )
        self.emissions = nn.Linear(size, labels)

    def forward(self, words: WordBatch) -> Tensor:
        states = self.dropout(self.projection(words.vectors) + self.positions[: words.mask.shape[1]])
        for layer in self.layers:
            states = layer(states, src_key_padding_mask=~words.mask)
        return self.emissions(states)
