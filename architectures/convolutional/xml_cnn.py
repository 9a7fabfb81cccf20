"""Convolutions, a maximum in each part of the text, and a bottleneck."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.blocks.pooling import dynamic_max
from architectures.blocks.windows import lengthen, windows_inside
from harness.kinds import TextEncoder
from harness.registry import Recipe, register
from harness.views.words import WordBatch


@register(
    "xml_cnn",
    name="XML-CNN",
    kind="text",
    paper="Liu et al. 2017",
    source="M2.3[47]",
    year=2017,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=64),
    tiny={"maps": 8, "parts": 3, "bottleneck": 16},
    vectors_of_paper="GloVe",
    deviations=(
        "On tasks with one label a text: a softmax and its cross-entropy, not a sigmoid and its own for each label.",
        "The number of parts, which the paper chooses for each data set on dev, is 8, as in a re-implementation.",
        "Windows lie inside the text; that re-implementation puts zero vectors at both ends.",
        "Batches of 64 are ours.",
    ),
)
class XMLCNN(TextEncoder):
    """Convolutions over windows of 2, 4 and 8 words, ReLU, the maximum of each map in each of
    ``parts`` equal parts of the text, and a hidden layer below the labels.

    The parts keep where in a text a feature stands, which one maximum over all of it would lose
    (:func:`dynamic_max` says how a text is cut). The ``bottleneck`` is narrower than what is
    pooled, so that many labels need few weights each; ReLU, then dropout. Vector (B,
    ``bottleneck``).
    """

    def __init__(
        self,
        width: int,
        maps: int = 128,
        windows: tuple = (2, 4, 8),
        parts: int = 8,
        bottleneck: int = 512,
        dropout: float = 0.5,
    ):
        super().__init__()
        self.parts = parts
        self.convolutions = nn.ModuleList(nn.Conv1d(width, maps, window) for window in windows)
        self.bottleneck = nn.Linear(maps * len(windows) * parts, bottleneck)
        self.dropout = nn.Dropout(dropout)
        self.size = bottleneck

    def forward(self, words: WordBatch) -> Tensor:
        vectors, lengths = words.vectors * words.mask[..., None], words.lengths
        pooled = []
        for convolution in self.convolutions:
            window = convolution.kernel_size[0]
            maps = torch.relu(convolution(lengthen(vectors, window).transpose(1, 2))).transpose(1, 2)
            pooled.append(dynamic_max(maps, windows_inside(lengths, window), self.parts).flatten(1))
        return self.dropout(torch.relu(self.bottleneck(torch.cat(pooled, dim=1))))
