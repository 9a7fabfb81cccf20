"""Very deep convolutional network over characters, squeezed by depthwise separable convolutions."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.pooling import halve
from architectures.convolutional.vdcnn import BLOCKS, TemporalBatchNorm
from harness.kinds import TextEncoder
from harness.registry import Recipe, register
from harness.views.characters import ALPHABET, CharacterBatch, Characters


class SeparableConvolution(nn.Module):
    """A convolution of each map by itself over 3 characters, batch norm and ReLU, then one over all
    maps of each character and batch norm: (B, width, T) -> (B, maps, T)."""

    def __init__(self, width: int, maps: int):
        super().__init__()
        self.depthwise = nn.Conv1d(width, width, 3, padding=1, groups=width, bias=False)
        self.pointwise = nn.Conv1d(width, maps, 1, bias=False)
        self.depthwise_norm, self.pointwise_norm = TemporalBatchNorm(width), TemporalBatchNorm(maps)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        inner = torch.relu(self.depthwise_norm(self.depthwise(states), mask))
        return self.pointwise_norm(self.pointwise(inner), mask)


class Block(nn.Module):
    """Two separable convolutions, each with ReLU: (B, width, T) -> (B, maps, T).

    With a shortcut the input is added before the last ReLU, through a convolution over 1 and batch
    norm where the width changes.
    """

    def __init__(self, width: int, maps: int, shortcut: bool):
        super().__init__()
        self.first, self.second = SeparableConvolution(width, maps), SeparableConvolution(maps, maps)
        self.shortcut = shortcut
        self.widen = nn.Conv1d(width, maps, 1, bias=False) if shortcut and width != maps else None
        self.widen_norm = None if self.widen is None else TemporalBatchNorm(maps)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        inner = self.second(torch.relu(self.first(states, mask)), mask)
        if self.shortcut:
            inner = inner + (states if self.widen is None else self.widen_norm(self.widen(states), mask))
        return torch.relu(inner)


def dynamic_mean(values: Tensor, lengths: Tensor, cells: int) -> Tensor:
    """Mean in each of ``cells`` equal parts of a text: values (B, C, T) with zeros outside the text
    of ``lengths`` (B,) -> (B, C, cells).

    Part p of n positions is floor(p n / cells) to ceil((p + 1) n / cells).
    """
    parts = torch.arange(cells, device=values.device)
    starts, ends = parts * lengths[:, None] // cells, -(-(parts + 1) * lengths[:, None] // cells)
    sums = F.pad(values.cumsum(-1), (1, 0))
    first, last = (sums.gather(2, edge[:, None].expand(-1, values.shape[1], -1)) for edge in (starts, ends))
    return (last - first) / (ends - starts)[:, None]


@register(
    "svdcnn_9",
    name="Squeezed VDCNN, 9 convolutions",
    kind="text",
    paper="Duque et al. 2019",
    source="M2.3[56]",
    year=2019,
    recipe=Recipe(
        optimizer="sgd",
        lr=0.01,
        momentum=0.9,
        weight_decay=0.001,
        batch_size=64,
        epochs=100,
        patience=100,
        lr_schedule="step",
        factor=0.9,
        step_start=3.0,
        step_epochs=3.0,
    ),
    hyperparameters={"depth": 9},
    tiny={"widths": (16, 16, 24, 24)},
    deviations=(
        (
            "Shorter texts are not padded to 1014 characters: padding is masked, in batch norm too, not read as a"
            " character."
        ),
        "The alphabet is that of Zhang et al. 2015, a blank, and one vector for all other characters.",
        "The first 1014 characters are read, as in VDCNN; the authors' released code reads 1024.",
    ),
    variants={
        "svdcnn_17": {"name": "Squeezed VDCNN, 17 convolutions", "hyperparameters": {"depth": 17}},
        "svdcnn_29": {"name": "Squeezed VDCNN, 29 convolutions", "hyperparameters": {"depth": 29}},
        "svdcnn_49": {"name": "Squeezed VDCNN, 49 convolutions", "hyperparameters": {"depth": 49}},
    },
)
class SqueezedVDCNN(TextEncoder):
    """The stack of :class:`~architectures.convolutional.vdcnn.VDCNN` with fewer weights in every
    part.

    Each convolution over 3 characters but the first is a depthwise and a pointwise one, and behind
    the last block each map has its mean in ``parts`` equal parts of the text, which the harness's
    linear layer alone reads: (B, parts * maps). Halving, widths and numbers of blocks are the
    VDCNN's, whose depth counts a separable convolution as one. Convolutions start as in He et al.
    2015. The first ``longest`` characters are read. Slow, because many small convolutions each pass
    over all of them.
    """

    view = Characters(alphabet=ALPHABET + " ", length=None, reverse=False)

    def __init__(
        self,
        width: int,
        depth: int = 9,
        dims: int = 16,
        widths: tuple = (64, 128, 256, 512),
        parts: int = 8,
        shortcut: bool = True,
        longest: int = 1014,
    ):
        super().__init__()
        if depth not in BLOCKS:
            raise ValueError(f"svdcnn: depth={depth} is none of {', '.join(map(str, BLOCKS))}")
        self.parts, self.longest = parts, longest
        self.characters = nn.Embedding(width + 1, dims)
        self.first = nn.Conv1d(dims, widths[0], 3, padding=1)
        below = [widths[0], *widths]
        self.groups = nn.ModuleList(
            nn.ModuleList(Block(below[number] if block == 0 else maps, maps, shortcut) for block in range(blocks))
            for number, (blocks, maps) in enumerate(zip(BLOCKS[depth], widths, strict=True))
        )
        for module in self.modules():
            if isinstance(module, nn.Conv1d):
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
        nn.init.zeros_(self.first.bias)
        self.size = widths[-1] * parts

    def forward(self, characters: CharacterBatch) -> Tensor:
        ids, mask = characters.ids[:, : self.longest], characters.mask[:, : self.longest]
        vectors = self.characters(ids).transpose(1, 2) * mask[:, None]
        states = self.first(vectors) * mask[:, None]
        for number, group in enumerate(self.groups):
            if number:
                states, mask = halve(states, mask)
            for block in group:
                states = block(states, mask)
        return dynamic_mean(states, mask.sum(1), self.parts).flatten(1)
