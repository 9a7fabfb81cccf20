"""Bidirectional LSTM whose states are read as a picture of time and features."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.recurrent import Recurrent
from architectures.blocks.windows import lengthen, window_mask
from harness.kinds import TextEncoder
from harness.registry import Entry, Recipe, register
from harness.views.words import WordBatch


@register(
    "blstm_2dcnn",
    name="BLSTM-2DCNN",
    kind="text",
    paper="Zhou et al. 2016",
    source="M2.2[40] T1",
    year=2016,
    recipe=Recipe(optimizer="adadelta", lr=1.0, rho=0.95, batch_size=10, weight_decay=0.00001),
    vectors_of_paper="GloVe",
    tiny={"hidden": 12, "maps": 4},
    deviations=(
        "All tasks share one fixed length of 64 words, not that of each data set's longest text; longer texts are cut.",
        "Padding is left out of every map; the paper's network reads it.",
        "Filters start as He et al. 2015 say, with biases at zero; the paper does not say how.",
        "The cells are divided by the number of maps, without which the softmax layer's first steps are too long.",
    ),
    variants={
        "blstm_2dpooling": {
            "name": "BLSTM-2DPooling",
            "hyperparameters": {"convolve": False},
            "tiny": {"hidden": 12},
            "without_deviations": (
                "Filters start as He et al. 2015 say",
                "The cells are divided by the number of maps",
            ),
        },
    },
)
class BLSTM2D(TextEncoder):
    """Both directions' states, added, are a map (time x feature): 3 x 3 filters, ReLU, maximum of
    each 2 x 2 cell, all cells in one vector.

    Without ``convolve`` the cells are taken from the states themselves. The map has ``length``
    rows, so that the vector (B, ``size``) has one size; cells behind the end of a text are zero. A
    text shorter than a filter is lengthened with zero states to one row of its map. The paper's 100
    maps, each as wide as the 300 features, make it more than ten times slower than a bidirectional
    LSTM alone.
    """

    ordinary_dropouts = ("dropouts",)

    def __init__(
        self,
        width: int,
        hidden: int = 300,
        maps: int = 100,
        window: int = 3,
        cell: int = 2,
        length: int = 64,
        convolve: bool = True,
        dropouts: tuple = (0.5, 0.2, 0.4),
    ):
        super().__init__()
        self.cell, self.length, self.window = cell, length, window if convolve else 1
        self.recurrence = Recurrent("lstm", width, hidden, bidirectional=True)
        self.convolution = nn.Conv2d(1, maps, window) if convolve else None
        # PyTorch's default bias is far larger than what young states give: half of the maps would
        # be zero, the others constant
        if convolve:
            nn.init.kaiming_normal_(self.convolution.weight, nonlinearity="relu")
            nn.init.zeros_(self.convolution.bias)
        self.word_dropout, self.state_dropout, self.dropout = (nn.Dropout(rate) for rate in dropouts)
        self.rows, columns = (math.ceil((side - self.window + 1) / cell) for side in (length, hidden))
        self.size = (maps if convolve else 1) * self.rows * columns

    @classmethod
    def unfit(cls, task: Entry, hyperparameters: dict[str, Any]) -> str | None:
        if task.type in ("match", "rank"):
            return (
                "its vector is a whole map of cells, hundreds of thousands of numbers, too wide to be joined with a"
                " second text's"
            )
        return super().unfit(task, hyperparameters)

    def forward(self, words: WordBatch) -> Tensor:
        vectors, mask = words.vectors[:, : self.length], words.mask[:, : self.length]
        forwards, backwards = self.recurrence(self.word_dropout(vectors), mask).chunk(2, dim=-1)
        states = self.state_dropout(forwards + backwards) * mask[..., None]
        maps = lengthen(states, self.window)[:, None]
        if self.convolution is not None:
            # With channels last and the mask in place below, a CPU needs half the time for these
            # large maps.
            maps = self.convolution(maps.to(memory_format=torch.channels_last))
        inside = window_mask(mask.sum(1), self.window, maps.shape[2])
        cells = F.max_pool2d(maps.masked_fill_(~inside[:, None, :, None], -torch.inf), self.cell, ceil_mode=True)
        # The ReLU keeps order: behind the maximum it gives the same on a quarter of the numbers.
        cells = cells.masked_fill(cells == -torch.inf, 0.0) if self.convolution is None else torch.relu(cells)
        vector = F.pad(cells, (0, 0, 0, self.rows - cells.shape[2])).flatten(1)
        # Half a million positive numbers, all weights of which Adam moves at once, throw the scores
        # about unless they are small.
        return self.dropout(vector / maps.shape[1])
