"""Kim's convolutional sentence classifier, in its four embedding variants."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.blocks.windows import lengthen, window_mask
from harness.kinds import TextEncoder
from harness.registry import Recipe, register
from harness.views.words import WordBatch


@register(
    "kim_cnn_rand",
    name="Kim CNN, random vectors",
    kind="text",
    paper="Kim 2014",
    source="M2.3[46] X4.5.1",
    year=2014,
    recipe=Recipe(optimizer="adadelta", lr=1.0, batch_size=50, epochs=25),
    tiny={"maps": 8},
    variants={
        "kim_cnn_static": {
            "name": "Kim CNN, static vectors",
            "hyperparameters": {"channels": "static"},
            "vectors_of_paper": "word2vec",
        },
        "kim_cnn_nonstatic": {
            "name": "Kim CNN, tuned vectors",
            "hyperparameters": {"channels": "tuned"},
            "vectors_of_paper": "word2vec",
        },
        "kim_cnn_multichannel": {
            "name": "Kim CNN, static and tuned vectors",
            "hyperparameters": {"channels": "multichannel"},
            "vectors_of_paper": "word2vec",
        },
    },
)
class KimCNN(TextEncoder):
    """One layer of convolutions over windows of 3, 4 and 5 words, ReLU, the maximum of each map
    over time, dropout.

    With two channels the same filters read the tuned and the static vectors, and the maps are added
    before the ReLU. The rows of the softmax layer are rescaled to norm 3 after each step. Texts
    shorter than a window are padded with zero vectors. Where they start at random, tuned vectors
    are the variant ``rand``.
    """

    head_max_norm = 3.0

    def __init__(
        self, width: int, maps: int = 100, windows: tuple = (3, 4, 5), dropout: float = 0.5, channels: str = "tuned"
    ):
        super().__init__()
        self.vectors = channels
        self.convolutions = nn.ModuleList(nn.Conv1d(width, maps, window, bias=False) for window in windows)
        self.bias = nn.Parameter(torch.zeros(len(windows), maps))
        self.dropout = nn.Dropout(dropout)
        self.size = maps * len(windows)

    def forward(self, words: WordBatch) -> Tensor:
        pooled = []
        for convolution, bias in zip(self.convolutions, self.bias, strict=True):
            window = convolution.kernel_size[0]
            maps = self.convolve(convolution, words.vectors)
            if self.vectors == "multichannel":
                maps = maps + self.convolve(convolution, words.static)
            inside = window_mask(words.lengths, window, maps.shape[-1])
            maps = torch.relu(maps + bias[:, None]).masked_fill(~inside[:, None], -torch.inf)
            pooled.append(maps.amax(-1))
        return self.dropout(torch.cat(pooled, dim=1))

    @staticmethod
    def convolve(convolution: nn.Conv1d, vectors: Tensor) -> Tensor:
        """Maps (B, maps, windows) of vectors (B, T, D), lengthened with zeros to at least one
        window."""
        return convolution(lengthen(vectors, convolution.kernel_size[0]).transpose(1, 2))
