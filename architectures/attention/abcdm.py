"""Attention on two bidirectional recurrences, convolutions over each, and two poolings."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.blocks.context_attention import ContextAttention
from architectures.blocks.recurrent import Recurrent
from architectures.blocks.windows import lengthen, window_mask
from harness.kinds import TextEncoder, pool
from harness.registry import Recipe, register
from harness.views.words import WordBatch


class Branch(nn.Module):
    """States of a bidirectional recurrence times their attention weights, linear convolutions over
    these, and the mean and the maximum of each map: (B, T, width) -> (B, ``size``)."""

    def __init__(self, cell: str, width: int, hidden: int, maps: int, windows: tuple[int, ...], dropout: float):
        super().__init__()
        self.recurrence = Recurrent(cell, width, hidden, bidirectional=True)
        self.attention = ContextAttention(self.recurrence.size, self.recurrence.size)
        self.convolutions = nn.ModuleList(nn.Conv1d(self.recurrence.size, maps, window) for window in windows)
        for convolution in self.convolutions:
            nn.init.kaiming_uniform_(convolution.weight, nonlinearity="relu")
            nn.init.zeros_(convolution.bias)
        self.dropout = nn.Dropout(dropout)
        self.size = 2 * maps * len(windows)

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        states = self.dropout(self.recurrence(vectors, mask))
        weighted = states * self.attention.weights(states, mask)[..., None]
        pooled = []
        for convolution in self.convolutions:
            window = convolution.kernel_size[0]
            maps = convolution(lengthen(weighted, window).transpose(1, 2)).transpose(1, 2)
            inside = window_mask(mask.sum(1), window, maps.shape[1])
            pooled += [pool(maps, inside, "mean"), pool(maps, inside, "max")]
        return torch.cat(pooled, dim=1)


@register(
    "abcdm",
    name="ABCDM",
    kind="text",
    paper="Basiri et al. 2020",
    source="M2.5[94]",
    year=2020,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=256, vector_dims=100),
    tiny={"hidden": 8, "maps": 6, "dense": 16},
    vectors_of_paper="GloVe",
    deviations=(
        (
            "Attention weights multiply the states, as in the paper; the authors' code sums these and convolves"
            " over the features of the sum."
        ),
        "Both recurrences read one table of tuned vectors; the authors' LSTM reads fixed ones.",
        "The authors' code normalises over the batch before each dense layer, and drops numbers on both sides of the"
        " norm between them; here nothing is normalised, and they are dropped there once.",
        "The softmax layer has a row for each class; theirs is one sigmoid.",
    ),
)
class ABCDM(TextEncoder):
    """A BiLSTM and a BiGRU side by side; of each, states times their attention weights, not summed,
    then convolutions of two windows, and the mean and the maximum of each map.

    The eight vectors are joined and pass two ReLU layers, the second half as wide: (B, ``dense`` //
    2). ``word_dropout`` drops the same features of all words of a text; ``dropout`` acts on states
    and behind the first dense layer.
    """

    ordinary_dropouts = ("dropout", "word_dropout")

    def __init__(
        self,
        width: int,
        hidden: int = 128,
        maps: int = 32,
        windows: tuple = (4, 6),
        dense: int = 64,
        word_dropout: float = 0.5,
        dropout: float = 0.2,
    ):
        super().__init__()
        self.word_dropout = nn.Dropout1d(word_dropout)
        self.branches = nn.ModuleList(Branch(cell, width, hidden, maps, windows, dropout) for cell in ("lstm", "gru"))
        joined = sum(branch.size for branch in self.branches)
        self.dense = nn.Sequential(
            nn.Linear(joined, dense), nn.ReLU(), nn.Dropout(dropout), nn.Linear(dense, dense // 2), nn.ReLU()
        )
        self.size = dense // 2

    def forward(self, words: WordBatch) -> Tensor:
        vectors = self.word_dropout(words.vectors.transpose(1, 2)).transpose(1, 2)
        return self.dense(torch.cat([branch(vectors, words.mask) for branch in self.branches], dim=1))
