"""Capsules of a whole text, from gated convolutions, whose votes for the classes are summed."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.capsules import separate_margin_loss
from architectures.blocks.squash import squash
from architectures.blocks.windows import lengthen, window_mask
from architectures.convolutional.vdcnn import TemporalBatchNorm
from harness.kinds import TextEncoder
from harness.registry import Recipe, register
from harness.views.words import WordBatch


class StaticRouting(nn.Module):
    """Capsules (B, ``children``, size) to parents (B, ``parents``, ``parent_size``): v_j =
    squash(sum_i W_ij u_i), in one pass and without coupling coefficients."""

    def __init__(self, children: int, size: int, parents: int, parent_size: int):
        super().__init__()
        self.transformations = nn.Parameter(torch.empty(parents, children, parent_size, size))
        limit = math.sqrt(6 / (children * (parent_size + size)))
        nn.init.uniform_(self.transformations, -limit, limit)

    def forward(self, children: Tensor) -> Tensor:
        return squash(torch.einsum("jikd,bid->bjk", self.transformations, children))


@register(
    "text_caps",
    name="Text capsules with static routing",
    kind="text",
    paper="Kim et al. 2020",
    source="M2.4[74]",
    year=2020,
    recipe=Recipe(
        optimizer="adam",
        lr=0.001,
        betas=(0.7, 0.999),
        batch_size=40,
        epochs=30,
        patience=30,
        lr_schedule="cosine",
    ),
    tiny={"maps": 24, "longest": 40, "dropout": 0.0},
    deviations=(
        (
            "The kernel of the capsule convolution has 200 positions; a text reads as many of them as it has windows,"
            " and one that has more is cut. The authors' code pads all texts of a data set to one length."
        ),
        "Padding is masked, in batch norm too.",
        "Dropout acts on the numbers of words' vectors too; the authors' program asks for it in a way that its Keras"
        " ignores.",
        "The rate falls by half a cosine, not by a hyperbolic tangent.",
        "Adam without AMSGrad.",
        "Matrices of votes start uniform with a variance for the sum of all children.",
    ),
)
class TextCapsules(TextEncoder):
    """The lengths (B, classes) of class capsules, voted for by a few capsules that each read the
    whole text.

    Windows of ``window`` words pass two convolutions, one of which gates the other: elu(norm(A x))
    * norm(B x). A kernel that spans the text, with weights of its own for each position, makes
    ``capsules`` capsules of ``size`` numbers of them, then batch norm and ReLU. Static routing and
    the separate margin loss follow. Dropout acts on words, on the gated features and on the
    capsules.
    """

    def __init__(
        self,
        width: int,
        classes: int,
        maps: int = 256,
        window: int = 3,
        capsules: int = 6,
        size: int = 10,
        class_size: int = 16,
        dropout: float = 0.1,
        longest: int = 200,
    ):
        super().__init__()
        self.longest, self.capsule_size = longest, size
        self.gate, self.features = (nn.Conv1d(width, maps, window, bias=False) for _ in range(2))
        self.gate_norm, self.features_norm = TemporalBatchNorm(maps), TemporalBatchNorm(maps)
        self.kernel = nn.Parameter(torch.empty(longest, maps, capsules * size))
        limit = math.sqrt(6 / (longest * (maps + capsules * size)))
        nn.init.uniform_(self.kernel, -limit, limit)
        self.norm = nn.BatchNorm1d(size)
        self.routing = StaticRouting(capsules, size, classes, class_size)
        self.dropout = nn.Dropout(dropout)

    def gated(self, vectors: Tensor, mask: Tensor) -> Tensor:
        """Gated features (B, maps, T') of the windows inside each text, zero elsewhere."""
        window = self.gate.kernel_size[0]
        words = self.dropout(lengthen(vectors * mask[..., None], window)).transpose(1, 2)
        words = words[..., : self.longest + window - 1]
        gate, features = self.gate(words), self.features(words)
        inside = window_mask(mask.sum(1), window, gate.shape[2])
        return F.elu(self.gate_norm(gate, inside)) * self.features_norm(features, inside)

    def forward(self, words: WordBatch) -> Tensor:
        gated = self.dropout(self.gated(words.vectors, words.mask))
        capsules = torch.einsum("bmt,tmc->bc", gated, self.kernel[: gated.shape[2]])
        capsules = capsules.unflatten(1, (-1, self.capsule_size))
        normed = self.norm(capsules.flatten(0, 1)).view_as(capsules)
        return torch.linalg.vector_norm(self.routing(self.dropout(torch.relu(normed))), dim=-1)

    def objective(self, scores: Tensor, labels: Tensor) -> Tensor:
        return separate_margin_loss(scores, labels)
