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
    recipe=Recipe(optimizer="adadelta", lr=1.0, rho=0.95, batch_size=50, epochs=25),
    hyperparameters={"channels": "random"},
    tiny={"maps": 8},
    version=2,
    deviations=(
        (
            "Windows lie inside the text, as in the paper's equations; the authors' code puts four zero vectors at each"
            " end and reads windows of zeros too."
        ),
        "Words that training shows once share the vector of unknown words; each has its own in the authors' code.",
        "The softmax layer starts as PyTorch's layers do, not from zero as in the authors' code.",
    ),
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
    before the ReLU. Texts shorter than a window are padded with zero vectors. ``random`` vectors
    are tuned ones that no file gives.

    After each step the rows of the softmax layer are rescaled to a norm of at most ``max_norm``.
    The paper's rows are multiplied by 1 - ``dropout`` when they answer; here features are divided
    by it in training instead, so that the rows are theirs as they answer, and so is their limit.
    """

    def __init__(
        self,
        width: int,
        maps: int = 100,
        windows: tuple = (3, 4, 5),
        dropout: float = 0.5,
        channels: str = "tuned",
        max_norm: float = 3.0,
    ):
        super().__init__()
        self.vectors = channels
        self.head_max_norm = max_norm * (1 - dropout)
        self.convolutions = nn.ModuleList(nn.Conv1d(width, maps, window, bias=False) for window in windows)
        for convolution in self.convolutions:
            nn.init.uniform_(convolution.weight, -0.01, 0.01)
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
