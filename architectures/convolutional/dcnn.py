"""Dynamic convolutional neural network."""

from __future__ import annotations

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.pooling import k_max
from harness.kinds import TextEncoder
from harness.registry import Recipe, register
from harness.views.words import WordBatch


@register(
    "dcnn",
    name="Dynamic CNN",
    kind="text",
    paper="Kalchbrenner et al. 2014",
    source="M2.3[45]",
    year=2014,
    recipe=Recipe(optimizer="adagrad", lr=0.1, batch_size=4, vector_dims=48),
    tiny={"maps": (3, 6)},
    deviations=(
        (
            "The settings are those of the paper's binary task for every task; five classes had filters of 10 and 7, 6"
            " and 12 maps, k of 5."
        ),
        "No L2 penalty: the paper does not name its weight. A re-implementation from the authors' program has decays"
        " of 0.0001 for vectors and output, of 0.00003 and 0.000003 for filters.",
        "An odd number of rows is folded with a row of zeros; the paper's widths are even.",
        "AdaGrad's sums are never set back; in that re-implementation they are zero again every five epochs.",
    ),
)
class DynamicCNN(TextEncoder):
    """Filters that slide over one dimension of the word vectors each; the largest values, in their
    order, as many as the text is long.

    A layer is a wide convolution, folding, dynamic k-max pooling, then bias and tanh. Its maps sum
    filters over the maps below, row by row, so that rows meet in the folding only, which adds two
    neighbours: 48 rows become 24, then 12. Of L layers the l-th keeps max(k_top, ceil((L - l) / L *
    n)) values of n words, the last one ``top``. Vector (B, maps * rows * top), on which dropout
    acts.
    """

    def __init__(self, width: int, windows: tuple = (7, 5), maps: tuple = (6, 14), top: int = 4, dropout: float = 0.5):
        super().__init__()
        if len(windows) != len(maps):
            raise ValueError(f"dcnn: windows={windows} and maps={maps} must name equally many layers")
        rows = [width]
        for _ in windows:
            rows.append((rows[-1] + 1) // 2)
        self.rows, self.top = rows, top
        layers = zip(rows, pairwise((1, *maps)), windows, strict=False)
        # One group of channels per row: each row has filters of its own, over all the maps of that
        # row.
        self.convolutions = nn.ModuleList(
            nn.Conv1d(row * below, row * above, window, padding=window - 1, groups=row, bias=False)
            for row, (below, above), window in layers
        )
        self.biases = nn.ParameterList(torch.zeros(row * above, 1) for row, above in zip(rows[1:], maps, strict=True))
        self.dropout = nn.Dropout(dropout)
        self.size = rows[-1] * maps[-1] * top

    def kept(self, layer: int, length: int | Tensor) -> int | Tensor:
        """ceil((L - l) / L * n) of a text of n words, for the l-th of L layers."""
        layers = len(self.convolutions)
        return -(-(layers - layer) * length // layers)

    @staticmethod
    def fold(states: Tensor, rows: int) -> Tensor:
        """States (B, rows * maps, T) with each two neighbouring rows added: (B, ceil(rows / 2) *
        maps, T)."""
        states = states.unflatten(1, (rows, -1))
        states = F.pad(states, (0, 0, 0, 0, 0, rows % 2))
        return states.unflatten(1, (-1, 2)).sum(2).flatten(1, 2)

    def forward(self, words: WordBatch) -> Tensor:
        states, mask, lengths = (words.vectors * words.mask[..., None]).transpose(1, 2), words.mask, words.lengths
        longest = mask.shape[1]
        for layer, (convolution, bias) in enumerate(zip(self.convolutions, self.biases, strict=True), start=1):
            states = self.fold(convolution(states), self.rows[layer - 1])
            # A wide convolution lengthens each text by window - 1: it begins before the first word
            # and ends behind the last.
            mask = F.pad(mask, (convolution.kernel_size[0] - 1, 0), value=True)
            counts = self.kept(layer, lengths).clamp(min=self.top)
            states, mask = k_max(states, mask, max(self.top, self.kept(layer, longest)), counts)
            states = torch.tanh(states + bias) * mask[:, None]
        return self.dropout(states.flatten(1))
