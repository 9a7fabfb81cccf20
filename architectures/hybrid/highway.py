"""Deep highway network on the mean of the word vectors."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.blocks.highway import Highway
from harness.kinds import TextEncoder, pool
from harness.registry import Recipe, register
from harness.views.words import WordBatch


@register(
    "highway",
    name="Highway network",
    kind="text",
    paper="Srivastava et al. 2015",
    source="M2.9[138]",
    year=2015,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=64),
    tiny={"hidden": 16, "layers": 4},
    deviations=(
        "The paper's networks read pictures; here they read the mean of a text's word vectors.",
        (
            "The paper searches rate, momentum and falling schedule of SGD at random; Adam and batches of 64 are ours,"
            " since SGD of 0.1 stood at chance for a hundred passes over the mini corpus. The authors' released"
            " program, of convolutional networks, has Nesterov's SGD of 0.01, momentum 0.9, batches of 100, a decay of"
            " 0.001 and dropout."
        ),
    ),
)
class HighwayNetwork(TextEncoder):
    """y = T(x) * relu(W x + b) + (1 - T(x)) * x through ``layers`` layers of one width, with T(x) =
    sigmoid(W_T x + b_T).

    A plain ReLU layer brings the mean of the word vectors to that width. Transform gates start with
    a bias of ``gate_bias``, so that at first most of each vector passes every layer; weights start
    as He et al. 2015 say. Vector (B, ``hidden``).
    """

    def __init__(self, width: int, hidden: int = 50, layers: int = 50, gate_bias: float = -2.0):
        super().__init__()
        self.widen = nn.Linear(width, hidden)
        self.highway = Highway(hidden, layers, gate_bias)
        for layer in (self.widen, *self.highway.transforms):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            nn.init.zeros_(layer.bias)
        self.size = hidden

    def forward(self, words: WordBatch) -> Tensor:
        return self.highway(torch.relu(self.widen(pool(words.vectors, words.mask, "mean"))))
