"""Siamese matching network."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.blocks.recurrent import Recurrent
from harness.kinds import PairEncoder, pool
from harness.registry import register
from harness.views.words import WordBatch


@register(
    "siamese_bilstm",
    name="Siamese matching network",
    kind="pair",
    paper="Zhang & Teng ch. 16.2.1",
    source="Z16.2.1",
    year=2020,
    tiny={"hidden": 16},
    deviations=(
        (
            "The source leaves the shared encoder, all sizes and the training open: a BiLSTM of 100 units each way, a"
            " ReLU layer of 100, Adam."
        ),
        "For more than two classes the sigmoid is a softmax.",
    ),
)
class SiameseBiLSTM(PairEncoder):
    """Two texts read by one BiLSTM, their end states joined for a multi-layer perceptron.

    h(W) is the last state of the forward direction beside the first one of the backward direction.
    The vector (B, ``hidden``) is the hidden layer of the perceptron on [h(W1); h(W2)]: no feature
    compares the texts before it.
    """

    def __init__(self, width: int, hidden: int = 100):
        super().__init__()
        self.encoding = Recurrent("lstm", width, hidden, bidirectional=True)
        self.hidden = nn.Linear(2 * self.encoding.size, hidden)
        self.size = hidden

    def forward(self, first: WordBatch, second: WordBatch) -> Tensor:
        ends = [pool(self.encoding(text.vectors, text.mask), text.mask, "ends") for text in (first, second)]
        return torch.relu(self.hidden(torch.cat(ends, dim=1)))
