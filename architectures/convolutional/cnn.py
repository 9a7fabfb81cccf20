"""A stack of convolutions that keep the length, told where in the text they are."""

from __future__ import annotations

import math
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.positions import sinusoids
from harness.kinds import SequenceEncoder
from harness.registry import Recipe, register

SCALARS = ("offset", "normalised_offset")
VECTORS = ("sinusoidal", "learned")


@register(
    "cnn",
    name="Stacked CNN with position encoding",
    kind="seq",
    paper="Gehring et al. 2017; Xiao & Zhu 4.4",
    source="X4.4",
    year=2017,
    recipe=Recipe(optimizer="adam", lr=0.001),
    tiny={"hidden": 16, "layers": 2},
    deviations=(
        (
            "Plain ReLU layers as in the source text; the gates and residual connections of Gehring et al. are another"
            " architecture."
        ),
        (
            "Relative positions are only named in the source: here the words of a window carry learned vectors of their"
            " distance |i-j|."
        ),
        "The source names no sizes: 4 layers of 200 over windows of 3, dropout of 0.1 on the input and Adam are ours.",
        (
            "Weights start as in He et al. 2015, and where sinusoids are added the word vectors are multiplied by the"
            " root of their width: without either four layers did not train."
        ),
    ),
)
class StackedCNN(SequenceEncoder):
    """h_i = relu(W [x_{i-a}; ...; x_{i+b}] + bias), layer upon layer, with zeros beside the text so
    that the length stays.

    An even ``window`` reaches one word further to the right. ``position`` is given to the first
    layer: ``none``; ``offset`` i and ``normalised_offset`` i / (n - 1), each one more input;
    ``sinusoidal`` and ``learned`` vectors, which ``merge`` "add" adds to the input and "concat"
    puts beside it; ``relative``. A learned table has ``longest`` rows, and later positions share
    the last.
    """

    def __init__(
        self,
        width: int,
        hidden: int = 200,
        layers: int = 4,
        window: int = 3,
        position: str = "sinusoidal",
        merge: str = "add",
        longest: int = 512,
        dropout: float = 0.1,
    ):
        super().__init__()
        if position not in ("none", *SCALARS, *VECTORS, "relative"):
            raise ValueError(f"cnn: position={position!r} is none of none, {', '.join(SCALARS + VECTORS)}, relative")
        if merge not in ("add", "concat"):
            raise ValueError(f"cnn: merge={merge!r} is neither add nor concat")
        self.position = position
        self.joins = position in SCALARS or (position in VECTORS and merge == "concat")
        if position == "learned":
            self.table = nn.Embedding(longest, width)
            nn.init.normal_(self.table.weight, std=0.1)
        if position == "relative":
            self.distances = nn.Parameter(torch.randn(window // 2 + 1, width) * 0.1)
        more = (1 if position in SCALARS else width) if self.joins else 0
        widths = [width + more] + [hidden] * layers
        self.convolutions = nn.ModuleList(nn.Conv1d(a, b, window, padding="same") for a, b in pairwise(widths))
        for (
            convolution
        ) in self.convolutions:  # PyTorch's default shrinks the signal by 0.4 in each ReLU layer: four would not train
            nn.init.kaiming_normal_(convolution.weight, nonlinearity="relu")
            nn.init.zeros_(convolution.bias)
        self.dropout = nn.Dropout(dropout)
        self.size = hidden

    def codes(self, vectors: Tensor, mask: Tensor) -> Tensor:
        """Codes of the positions, (B, T, 1) or (T, width)."""
        positions = torch.arange(mask.shape[1], device=mask.device)
        if self.position == "sinusoidal":
            return sinusoids(len(positions), vectors.shape[-1], vectors)
        if self.position == "learned":
            return self.table(positions.clamp(max=self.table.num_embeddings - 1))
        last = (
            (mask.sum(1, keepdim=True) - 1).clamp(min=1)
            if self.position == "normalised_offset"
            else torch.ones_like(mask[:, :1])
        )
        return (positions / last)[..., None].to(vectors.dtype)

    def placed(self, vectors: Tensor, mask: Tensor) -> Tensor:
        """Vectors (B, T, width or more) that hold their position, where it is a property of the
        word alone."""
        if self.position in ("none", "relative"):
            return vectors
        codes = self.codes(vectors, mask)
        if self.joins:
            return torch.cat([vectors, codes.expand(*vectors.shape[:2], -1)], dim=-1)
        # Sinusoids are of size 1, word vectors far smaller: unscaled (Vaswani et al. 2017 scale
        # them too), the words would drown.
        scale = math.sqrt(vectors.shape[-1]) if self.position == "sinusoidal" else 1.0
        return vectors * scale + codes

    def distance_scores(self, mask: Tensor) -> Tensor:
        """The first layer's output for the distance vectors of the words in each window (B,
        hidden, T)."""
        weight = self.convolutions[0].weight
        window = weight.shape[-1]
        distances = (torch.arange(window, device=mask.device) - (window - 1) // 2).abs()
        kernel = torch.einsum("how,wh->ow", weight.transpose(0, 1), self.distances[distances])
        return F.conv1d(mask[:, None].to(kernel.dtype), kernel[:, None], padding="same")

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        states = self.dropout(self.placed(vectors, mask)).transpose(1, 2)
        for number, convolution in enumerate(self.convolutions):
            maps = convolution(states * mask[:, None])
            if number == 0 and self.position == "relative":
                maps = maps + self.distance_scores(mask)
            states = torch.relu(maps)
        return states.transpose(1, 2)
