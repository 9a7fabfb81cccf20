"""Deep pyramid convolutional network."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.pooling import halve
from harness.kinds import TextEncoder, pool
from harness.registry import Recipe, register
from harness.views.words import WordBatch

SPREAD = 0.01
"""Standard deviation of the Gaussian from which weights start."""


class Block(nn.Module):
    """z + W2 relu(W1 relu(z) + b1) + b2: states (B, maps, T), with zeros outside the text.

    The ``lowest`` block reads the regions as they are: z + W2 relu(W1 z + b1) + b2.
    """

    def __init__(self, maps: int, window: int, lowest: bool):
        super().__init__()
        self.convolutions = nn.ModuleList(nn.Conv1d(maps, maps, window, padding="same") for _ in range(2))
        self.lowest = lowest

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        first, second = self.convolutions
        inner = first(states if self.lowest else torch.relu(states)) * mask[:, None]
        return states + second(torch.relu(inner)) * mask[:, None]


@register(
    "dpcnn",
    name="Deep pyramid CNN",
    kind="text",
    paper="Johnson & Zhang 2017",
    source="M2.3[49] T1 T2",
    year=2017,
    recipe=Recipe(
        optimizer="sgd",
        lr=0.05,
        momentum=0.9,
        batch_size=100,
        epochs=30,
        patience=30,
        weight_decay=0.0001,
        decay_exempt=("biases",),
        lr_schedule="step",
        factor=0.1,
        step_start=24.0,
        step_epochs=30.0,
    ),
    tiny={"maps": 24, "blocks": 3},
    version=2,
    deviations=(
        (
            "Regions are sums of word vectors under one matrix, not bags of one-hot words: the paper's weights for each"
            " word are factored."
        ),
        "All words that training shows twice are known, not the 30,000 most frequent ones.",
        "No unsupervised region embeddings beside them: this is the paper's model without.",
        "The recipe is that for Yelp reviews; the paper chooses the rate for each set on held-out data.",
        "The softmax layer is the harness's and starts uniform, not from the Gaussian of the other layers.",
    ),
)
class DeepPyramidCNN(TextEncoder):
    """Two-layer blocks with identity shortcuts, all of one width, each on half as many positions as
    the one below.

    A linear embedding of the words of each region of ``window`` words, whose order does not count;
    ``blocks`` blocks of pre-activated convolutions over 3 positions; maximum of 3 positions at
    stride 2 between blocks, so that the cost of all is that of two at full length; the maximum over
    what is left; dropout. Texts with fewer words than 2^(blocks - 1) end up in one position. Weight
    layers: 1 + 2 * blocks, 15 as in the paper.
    """

    def __init__(self, width: int, maps: int = 250, blocks: int = 7, window: int = 3, dropout: float = 0.5):
        super().__init__()
        self.window = window
        self.regions = nn.Conv1d(width, maps, 1)
        self.blocks = nn.ModuleList(Block(maps, window=3, lowest=number == 0) for number in range(blocks))
        for module in self.modules():
            if isinstance(module, nn.Conv1d):
                nn.init.normal_(module.weight, std=SPREAD)
                nn.init.zeros_(module.bias)
        self.dropout = nn.Dropout(dropout)
        self.size = maps

    def bags(self, vectors: Tensor) -> Tensor:
        """Sums (B, D, T) of the vectors (B, T, D) of the words in the region around each
        position."""
        framed = F.pad(vectors.transpose(1, 2), ((self.window - 1) // 2, self.window // 2))
        return framed.unfold(2, self.window, 1).sum(-1)

    def forward(self, words: WordBatch) -> Tensor:
        mask = words.mask
        states = self.regions(self.bags(words.vectors * mask[..., None])) * mask[:, None]
        for number, block in enumerate(self.blocks):
            if number:
                states, mask = halve(states, mask)
            states = block(states, mask)
        return self.dropout(pool(states.transpose(1, 2), mask, "max"))
