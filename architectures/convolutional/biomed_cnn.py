"""Convolutional networks for medical texts: two blocks of two convolutions (Hughes), and Kim's
network with a yes or no for each label (Rios)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.blocks.pooling import pool_by
from architectures.blocks.windows import lengthen, windows_inside
from architectures.convolutional.kim_cnn import KimCNN
from harness.kinds import TextEncoder
from harness.registry import Recipe, register
from harness.views.words import WordBatch


@register(
    "biomed_cnn",
    name="Medical-text CNN (Hughes)",
    kind="text",
    paper="Hughes et al. 2017",
    source="M2.3[64,66,67]",
    year=2017,
    version=2,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=50, vector_dims=100),
    tiny={"maps": 16, "hidden": 16, "dropout": 0.0},
    vectors_of_paper="word2vec",
    deviations=(
        (
            "Windows and maxima lie inside the text, and the second maximum is over all of it; the paper reads"
            " sentences that are cut or padded to 50 words."
        ),
        "The first maximum is that of every two positions, and the optimiser and its batches are ours: not stated.",
    ),
)
class BiomedCNN(TextEncoder):
    """Two blocks of two convolutions of ``maps`` over ``window`` positions with ReLU and a maximum,
    and a hidden layer below the classes, with dropout before and behind it.

    The first maximum is that of every ``pooled`` positions, the second that of all. Vector (B,
    ``hidden``).
    """

    def __init__(
        self,
        width: int,
        maps: int = 256,
        window: int = 5,
        pooled: int = 2,
        hidden: int = 128,
        dropout: float = 0.5,
    ):
        super().__init__()
        self.pooled = pooled
        widths = (width, maps, maps, maps)
        self.convolutions = nn.ModuleList(nn.Conv1d(each, maps, window) for each in widths)
        self.dropout = nn.Dropout(dropout)
        self.hidden = nn.Linear(maps, hidden)
        self.size = hidden

    def forward(self, words: WordBatch) -> Tensor:
        states, lengths = words.vectors * words.mask[..., None], words.lengths
        states, lengths = self.convolve(self.convolutions[:2], states, lengths)
        states, lengths = pool_by(states, lengths, self.pooled)
        states, lengths = self.convolve(self.convolutions[2:], states, lengths)
        states, _ = pool_by(states, lengths, states.shape[1])
        return self.dropout(torch.relu(self.hidden(self.dropout(states.squeeze(1)))))

    @staticmethod
    def convolve(convolutions: nn.ModuleList, states: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Maps (B, T, maps) of one convolution after the other, and the lengths (B,) in windows."""
        for convolution in convolutions:
            window = convolution.kernel_size[0]
            states = torch.relu(convolution(lengthen(states, window).transpose(1, 2))).transpose(1, 2)
            lengths = windows_inside(lengths, window)
            inside = torch.arange(states.shape[1], device=states.device) < lengths[:, None]
            states = states * inside[..., None]
        return states, lengths


@register(
    "biomed_cnn_rios",
    name="Medical-text CNN (Rios)",
    kind="text",
    paper="Rios & Kavuluru 2015",
    source="M2.3[64,66,67]",
    year=2015,
    version=2,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=50, epochs=25),
    tiny={"maps": 8, "dropout": 0.0},
    vectors_of_paper="word2vec",
    deviations=(
        "The settings are those of the authors' later program. Filters start as Kim's; theirs as in He et al. 2015.",
        "All labels share one network, and a label is said above 0.5; the authors' program trains a network for each"
        " label, which takes the more probable of no and yes.",
        "Words that training shows less often than five times are unknown in the authors' program, and not here.",
        "On tasks with one label a text it is Kim's network with a softmax.",
    ),
)
class RiosCNN(KimCNN):
    """:class:`~architectures.convolutional.kim_cnn.KimCNN` with tuned vectors, whose labels are a
    yes or no each by itself.

    The rows of the last layer are bounded by no norm, since no label competes with another.
    """

    def __init__(self, width: int, maps: int = 300, windows: tuple = (3, 4, 5), dropout: float = 0.5):
        super().__init__(width, maps, windows, dropout)
        self.head_max_norm = None
