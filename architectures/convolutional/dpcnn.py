"""Deep pyramid convolutional network."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.blocks.pooling import halve
from harness.kinds import TextEncoder, pool
from harness.registry import Recipe, register
from harness.views.words import WordBatch

SPREAD = 0.01
"""Standard deviation of the Gaussian from which weights start."""


class Block(nn.Module):
    """z + W2 relu(W1 relu(z) + b1) + b2: states (B, maps, T), with zeros outside the text."""

    def __init__(self, maps: int, window: int):
        super().__init__()
        self.convolutions = nn.ModuleList(nn.Conv1d(maps, maps, window, padding="same") for _ in range(2))

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        inner = states
        for convolution in self.convolutions:
            inner = convolution(torch.relu(inner)) * mask[:, None]
        return states + inner


@register(
    "dpcnn",
    name="Deep pyramid CNN",
    kind="text",
    paper="Johnson & Zhang 2017",
    source="M2.3[49] T1 T2",
    year=2017,
    recipe=Recipe(optimizer="sgd", lr=0.05, momentum=0.9, batch_size=100, weight_decay=0.0001),
    tiny={"maps": 24, "blocks": 3},
    deviations=(
        (
            "Regions are read as word vectors, not as one-hot words: the paper's weights for each word and place are"
            " factored."
        ),
        "No unsupervised region embeddings beside them: this is the paper's model without.",
        "The rate stays constant; the paper divides it by ten after 4/5 of the epochs and chooses it on held-out data.",
    ),
)
class DeepPyramidCNN(TextEncoder):
    """Two-layer blocks with identity shortcuts, all of one width, each on half as many positions as
    the one below.

    A linear embedding of each region of ``window`` words; ``blocks`` blocks of pre-activated
    convolutions over 3 positions; maximum of 3 positions at stride 2 between blocks, so that the
    cost of all is that of two at full length; the maximum over what is left; dropout. Texts with
    fewer words than 2^(blocks - 1) end up in one position. Weight layers: 1 + 2 * blocks, 15 as in
    the paper.
    """

    def __init__(self, width: int, maps: int = 250, blocks: int = 7, window: int = 3, dropout: float = 0.5):
        super().__init__()
        self.regions = nn.Conv1d(width, maps, window, padding="same")
        self.blocks = nn.ModuleList(Block(maps, window=3) for _ in range(blocks))
        for module in self.modules():
            if isinstance(module, nn.Conv1d):
                nn.init.normal_(module.weight, std=SPREAD)
                nn.init.zeros_(module.bias)
        self.dropout = nn.Dropout(dropout)
        self.size = maps

    def forward(self, words: WordBatch) -> Tensor:
        mask = words.mask
        states = self.regions((words.vectors * mask[..., None]).transpose(1, 2)) * mask[:, None]
        for number, block in enumerate(self.blocks):
            if number:
                states, mask = halve(states, mask)
            states = block(states, mask)
        return self.dropout(pool(states.transpose(1, 2), mask, "max"))
