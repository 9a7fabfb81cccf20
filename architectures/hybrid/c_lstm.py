"""Convolution over words, then an LSTM over its windows."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.blocks.recurrent import Recurrent
from architectures.blocks.windows import lengthen, window_mask
from harness.kinds import TextEncoder, pool
from harness.registry import Recipe, register
from harness.views.words import WordBatch


@register(
    "c_lstm",
    name="C-LSTM",
    kind="text",
    paper="Zhou et al. 2015",
    source="M2.9[129]",
    year=2015,
    recipe=Recipe(optimizer="rmsprop", lr=0.001, alpha=0.9, batch_size=32),
    tiny={"maps": 16, "hidden": 16},
    vectors_of_paper="word2vec",
    version=2,
    deviations=("The softmax layer has no L2 penalty; the paper's is 0.001.",),
)
class CLSTM(TextEncoder):
    """The maps of each window of words, ReLU and no pooling, are one step of an LSTM, whose last
    state (B, hidden) is the text's vector.

    With several ``windows`` each gives its maps for the positions at which the widest one fits,
    side by side. A text shorter than the widest window is lengthened with zero vectors to one step.
    Dropout acts on the word vectors and on the last state.
    """

    def __init__(self, width: int, maps: int = 150, windows: tuple = (3,), hidden: int = 150, dropout: float = 0.5):
        super().__init__()
        self.widest = max(windows)
        self.convolutions = nn.ModuleList(nn.Conv1d(width, maps, window) for window in windows)
        self.recurrence = Recurrent("lstm", maps * len(windows), hidden)
        self.dropout = nn.Dropout(dropout)
        self.size = hidden

    def phrases(self, words: WordBatch) -> tuple[Tensor, Tensor]:
        """Maps (B, steps, maps * windows) of the windows in the order of the text, and the mask of
        those inside it."""
        vectors = lengthen(self.dropout(words.vectors) * words.mask[..., None], self.widest).transpose(1, 2)
        steps = vectors.shape[2] - self.widest + 1
        maps = torch.cat([torch.relu(convolution(vectors))[..., :steps] for convolution in self.convolutions], dim=1)
        return maps.transpose(1, 2), window_mask(words.lengths, self.widest, steps)

    def forward(self, words: WordBatch) -> Tensor:
        phrases, mask = self.phrases(words)
        return self.dropout(pool(self.recurrence(phrases, mask), mask, "last"))
