"""Very deep convolutional network over characters."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.blocks.pooling import halve, k_max
from harness.kinds import TextEncoder
from harness.registry import Recipe, register
from harness.views.characters import ALPHABET, CharacterBatch, Characters

BLOCKS = {9: (1, 1, 1, 1), 17: (2, 2, 2, 2), 29: (5, 5, 2, 2), 49: (8, 8, 5, 3)}
"""Blocks per width for each number of convolutions (table 2): the first one, and two in each
block."""


class TemporalBatchNorm(nn.BatchNorm1d):
    """Batch norm of states (B, C, T) over the real positions of all texts together; zeros outside
    the texts."""

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        real = mask[:, None].to(states.dtype)
        mean, variance = self.running_mean, self.running_var
        if self.training:
            count = real.sum()
            mean = (states * real).sum((0, 2)) / count
            variance = ((states - mean[:, None]).square() * real).sum((0, 2)) / count
            with torch.no_grad():
                self.running_mean.lerp_(mean, self.momentum)
                self.running_var.lerp_(variance * count / (count - 1).clamp(min=1), self.momentum)
        scale = self.weight * torch.rsqrt(variance + self.eps)
        return torch.addcmul((self.bias - mean * scale)[:, None], states, scale[:, None]) * real


class Block(nn.Module):
    """Convolution over 3 characters, batch norm and ReLU, twice: (B, width, T) -> (B, maps, T).

    With a shortcut the input is added before the second ReLU, through a convolution over 1 and
    batch norm where the width changes.
    """

    def __init__(self, width: int, maps: int, shortcut: bool):
        super().__init__()
        self.convolutions = nn.ModuleList(nn.Conv1d(size, maps, 3, padding=1, bias=False) for size in (width, maps))
        self.norms = nn.ModuleList(TemporalBatchNorm(maps) for _ in range(2))
        self.shortcut = shortcut
        self.widen = nn.Conv1d(width, maps, 1, bias=False) if shortcut and width != maps else None
        self.widen_norm = None if self.widen is None else TemporalBatchNorm(maps)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        inner = torch.relu(self.norms[0](self.convolutions[0](states), mask))
        inner = self.norms[1](self.convolutions[1](inner), mask)
        if self.shortcut:
            inner = inner + (states if self.widen is None else self.widen_norm(self.widen(states), mask))
        return torch.relu(inner)


@register(
    "vdcnn_9",
    name="VDCNN, 9 convolutions",
    kind="text",
    paper="Conneau et al. 2017",
    source="M2.3[55] X4.5.1",
    year=2017,
    recipe=Recipe(optimizer="sgd", lr=0.01, momentum=0.9, batch_size=128),
    hyperparameters={"depth": 9},
    tiny={"widths": (16, 16, 24, 24), "hidden": 32},
    deviations=(
        (
            "Shorter texts are not padded to 1014 characters: padding is masked, in batch norm too, not read as a"
            " character."
        ),
        "The alphabet is that of Zhang et al. 2015, a blank, and one vector for all other characters.",
    ),
    variants={
        "vdcnn_17": {"name": "VDCNN, 17 convolutions", "hyperparameters": {"depth": 17}},
        "vdcnn_29": {"name": "VDCNN, 29 convolutions", "hyperparameters": {"depth": 29}},
        "vdcnn_49": {"name": "VDCNN, 49 convolutions", "hyperparameters": {"depth": 49}},
    },
)
class VDCNN(TextEncoder):
    """Blocks of two narrow convolutions over characters, twice as wide whenever a text becomes half
    as long.

    Character vectors, a convolution to 64 maps, then blocks of 64, 128, 256 and 512 maps with max
    pooling (3, stride 2) in between; the 8 largest values of each map, in order; two dense layers,
    on which the harness puts the third. Convolutions start as in He et al. 2015, as the paper's.
    ``shortcut`` adds residual connections; the paper reports both. The first ``longest`` characters
    are read. Slower than word-level models because a text has five times as many characters as
    words, and each passes at least nine convolutions.
    """

    view = Characters(alphabet=ALPHABET + " ", length=None, reverse=False)

    def __init__(
        self,
        width: int,
        depth: int = 9,
        dims: int = 16,
        widths: tuple = (64, 128, 256, 512),
        top: int = 8,
        hidden: int = 2048,
        shortcut: bool = False,
        longest: int = 1014,
    ):
        super().__init__()
        if depth not in BLOCKS:
            raise ValueError(f"vdcnn: depth={depth} is none of {', '.join(map(str, BLOCKS))}")
        self.top, self.longest = top, longest
        self.characters = nn.Embedding(width + 1, dims)
        self.first = nn.Conv1d(dims, widths[0], 3, padding=1)
        below = [widths[0], *widths]
        self.groups = nn.ModuleList(
            nn.ModuleList(Block(below[number] if block == 0 else maps, maps, shortcut) for block in range(blocks))
            for number, (blocks, maps) in enumerate(zip(BLOCKS[depth], widths, strict=True))
        )
        self.dense = nn.Sequential(nn.Linear(widths[-1] * top, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        for module in self.modules():
            if isinstance(module, nn.Conv1d):
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
        self.size = hidden

    def forward(self, characters: CharacterBatch) -> Tensor:
        ids, mask = characters.ids[:, : self.longest], characters.mask[:, : self.longest]
        vectors = self.characters(ids).transpose(1, 2) * mask[:, None]
        states = self.first(vectors) * mask[:, None]
        for number, group in enumerate(self.groups):
            if number:
                states, mask = halve(states, mask)
            for block in group:
                states = block(states, mask)
        return self.dense(k_max(states, mask, self.top)[0].flatten(1))
