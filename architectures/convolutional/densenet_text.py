"""Dense blocks of convolutions, over characters or over words."""

from __future__ import annotations

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.convolutional.vdcnn import TemporalBatchNorm
from harness.kinds import TextEncoder, pool
from harness.registry import Recipe, register
from harness.views.characters import CharacterBatch, Characters
from harness.views.words import WordBatch


class Layer(nn.Module):
    """Batch norm, ReLU and a convolution over 3 positions: states (B, width, T) -> (B, maps, T)."""

    def __init__(self, width: int, maps: int):
        super().__init__()
        self.norm = TemporalBatchNorm(width)
        self.convolution = nn.Conv1d(width, maps, 3, padding=1, bias=False)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        # What stands at padding reaches no window: norms and pooling clear it.
        return self.convolution(torch.relu(self.norm(states, mask)))


class DenseBlock(nn.Module):
    """``layers`` layers of ``growth`` maps, each of which reads the block's input (B, width, T) and
    the maps of all layers before it; the last one's maps (B, growth, T) leave the block."""

    def __init__(self, width: int, growth: int, layers: int):
        super().__init__()
        self.layers = nn.ModuleList(Layer(width + growth * number, growth) for number in range(layers))

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        for layer in self.layers:
            maps = layer(states, mask)
            states = torch.cat([states, maps], dim=1)
        return maps


def halve(states: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Maximum of each two neighbours: states (B, C, T), mask (B, T) -> half as many, rounded up;
    zeros outside the texts."""
    pooled = F.max_pool1d(states.masked_fill(~mask[:, None], -torch.inf), 2, ceil_mode=True)
    mask = mask[:, ::2]
    return pooled.masked_fill(~mask[:, None], 0), mask


@register(
    "densenet_text_word",
    name="DenseNet for text, words",
    kind="text",
    paper="Le et al. 2018",
    source="M2.3[57,58]",
    year=2018,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=128, epochs=50),
    tiny={"growths": (8, 12), "layers": (2, 2)},
    vectors_of_paper="word2vec",
    deviations=(
        (
            "A layer normalises before it convolves and reads its block's input beside the layers before it, as"
            " DenseNet has it; the authors' code convolves first and leaves the input out."
        ),
        "A block hands on the maps of its last layer; DenseNet's hands on all of them.",
        (
            "Of the paper's two heads this is the global average below one linear layer, not maxima of windows below"
            " three: Adam's first steps through those drown what a small corpus shows."
        ),
        "Texts are not padded to one length; padding is masked, in batch norm too.",
    ),
)
class DenseNetText(TextEncoder):
    """Dense blocks of ever more maps, with a convolution and half as many positions after each.

    A first convolution over 3 positions, then four blocks; between them a layer that makes as many
    maps as the next block's layers, and the maximum of each two positions. Behind the last block
    norm and ReLU, the same maximum, and the mean over what is left: (B, ``growths[-1]``). Filters
    start Glorot-uniform. Slow, because the last layer has two thousand maps to read.
    """

    def __init__(self, width: int, growths: tuple = (64, 128, 256, 512), layers: tuple = (4, 4, 4, 4)):
        super().__init__()
        self.first = nn.Conv1d(width, growths[0], 3, padding=1, bias=False)
        self.blocks = nn.ModuleList(DenseBlock(g, g, number) for g, number in zip(growths, layers, strict=True))
        self.transitions = nn.ModuleList(Layer(*pair) for pair in pairwise(growths))
        self.norm = TemporalBatchNorm(growths[-1])
        for module in self.modules():
            if isinstance(module, nn.Conv1d):
                nn.init.xavier_uniform_(module.weight)
        self.size = growths[-1]

    def forward(self, text: WordBatch | CharacterBatch) -> Tensor:
        mask = text.mask
        states = self.first(text.vectors.transpose(1, 2) * mask[:, None])
        for block, transition in zip(self.blocks, self.transitions, strict=False):
            states, mask = halve(transition(block(states, mask), mask), mask)
        states, mask = halve(torch.relu(self.norm(self.blocks[-1](states, mask), mask)), mask)
        return pool(states.transpose(1, 2), mask, "mean")


@register(
    "densenet_text_char",
    name="DenseNet for text, characters",
    kind="text",
    paper="Le et al. 2018",
    source="M2.3[57,58]",
    year=2018,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=128, epochs=50),
    tiny={"growths": (8, 12), "layers": (2, 2)},
    deviations=(
        (
            "A layer normalises before it convolves and reads its block's input beside the layers before it, as"
            " DenseNet has it; the authors' code convolves first and leaves the input out."
        ),
        "A block hands on the maps of its last layer; DenseNet's hands on all of them.",
        (
            "Of the paper's two heads this is the global average below one linear layer, not maxima of windows below"
            " three: Adam's first steps through those drown what a small corpus shows."
        ),
        "Texts are not padded to one length; padding is masked, in batch norm too.",
    ),
)
class DenseNetCharacters(DenseNetText):
    """As :class:`DenseNetText`, over the first ``longest`` characters, one-hot. Slow, because a
    text has five times as many characters as words."""

    view = Characters(length=None, reverse=False)

    def __init__(
        self,
        width: int,
        growths: tuple = (64, 128, 256, 512),
        layers: tuple = (4, 4, 4, 4),
        longest: int = 1014,
    ):
        super().__init__(width, growths, layers)
        self.longest = longest

    def forward(self, text: CharacterBatch) -> Tensor:
        cut = text._replace(vectors=text.vectors[:, : self.longest], mask=text.mask[:, : self.longest])
        return super().forward(cut)
